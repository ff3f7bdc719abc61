// The dashboard in a real browser: every picture draws, every control does what it says, and a lost connection comes back.
//
// usage: node tests/browser/dashboard.mjs KAFLOW PLAYWRIGHT_FOLDER [SCREENSHOT_FOLDER]
//
// PAGE=src/serve/page takes scripts and styles from there instead of the program, to try changes without building.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [program, playwright, pictures] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(resolve(playwright, 'x.js'))('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'kaflow-browser-'));
let run;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const say = (words) => console.log(`browser: ${words}`);

/** Polls until `check` gives something true; says what was waited for when it does not. */
async function until(what, check, patience = 20000) {
  for (const end = Date.now() + patience; ;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`in vain: ${what}`);
    await sleep(50);
  }
}

/** A run that is served: its address, a way to ask it, and how it ends. */
async function start(...args) {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text) => { said += text; });
  const ended = new Promise((done) => child.on('exit', done));
  const url = await until(`an address from ${args[0]}`, async () => {
    assert.equal(child.exitCode, null, said);
    return said.match(/open (http:\S+)/)?.[1];
  });
  const { origin, searchParams } = new URL(url);
  const headers = { Authorization: `Bearer ${searchParams.get('token')}` };
  const state = async () => (await fetch(`${origin}/state`, { headers })).json();
  return { child, url, origin, headers, state, ended, port: new URL(url).port };
}

/** A page that collects what a browser complains of. */
async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.complaints = [];
  // A refused command is no error of the page, though the browser reports it; nor is a connection that the test has cut.
  const expected = (text) => /status of 422/.test(text) || (page.offline && /ERR_|Failed to load resource/.test(text));
  page.on('console', (m) => { if (m.type() === 'error' && !expected(m.text())) page.complaints.push(m.text()); });
  page.on('pageerror', (e) => page.complaints.push(String(e)));
  page.on('dialog', (d) => d.accept());
  page.on('request', (r) => { if (!r.url().startsWith('data:') && new URL(r.url()).origin !== new URL(url).origin) page.complaints.push(`asked ${r.url()}`); });
  if (process.env.PAGE) await page.route(/\.(js|css)$/, (route) => route.fulfill({ path: join(process.env.PAGE, new URL(route.request().url()).pathname) }));
  await page.goto(url);
  return page;
}

const frames = (page) => page.evaluate(() => window.kaflow.frames);
const flowing = (page) => until('frames', async () => { const before = await frames(page); await sleep(300); return (await frames(page)) > before + 1; });
/** A number for what each canvas shows; that of an empty one of its size where `blank`. */
const pixels = (page, blank = false) => page.evaluate((blank) => Object.fromEntries([...document.querySelectorAll('canvas')].map((c) => {
  const shown = blank ? Object.assign(document.createElement('canvas'), { width: c.width, height: c.height }) : c;
  let hash = 0;
  for (const letter of shown.toDataURL()) hash = (31 * hash + letter.charCodeAt(0)) | 0;
  return [c.id, hash];
})), blank);
const card = (page, name) => page.locator('.filter', { has: page.locator('h3', { hasText: new RegExp(`^${name}$`) }) });
const shot = async (page, name) => { if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true }); };

async function everyPictureDraws(page, least) {
  await flowing(page);
  const empty = await pixels(page, true);
  const first = await until('pictures with something in them', async () => {
    const now = await pixels(page);
    const waiting = await page.evaluate(() => [...document.querySelectorAll('figure > .skip')].filter((t) => /nothing yet/.test(t.textContent)).length);
    return waiting === 0 && Object.keys(now).every((id) => now[id] !== empty[id]) && now;
  });
  assert.ok(Object.keys(first).length >= least, `${Object.keys(first)}`);
  await sleep(1000);
  // The others stand still where nothing moves: no gap, no curve.
  const later = await until('pictures that move', async () => {
    const now = await pixels(page);
    return Object.keys(now).every((id) => now[id] !== first[id]) && now;
  });
  say(`${Object.keys(later).length} pictures draw and move: ${Object.keys(later).join(', ')}`);
}

async function whatIsReadAloud(page) {
  const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input, select')].filter((e) =>
    !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(nameless, []);
  const silent = await page.evaluate(() => [...document.querySelectorAll('canvas')].filter((c) => c.getAttribute('role') !== 'img'
    || !c.getAttribute('aria-labelledby').split(' ').every((id) => document.getElementById(id).textContent.trim())).map((c) => c.id));
  assert.deepEqual(silent, []);
  assert.match(await page.locator('#summary').textContent(), /NMSE in dB, the best first: \w/);
  say('every control has a name, every picture a text');
}

async function filtersObey(page, run) {
  const nlms = card(page, 'nlms');
  const filter = async () => (await run.state()).filters.find((f) => f.name === 'nlms');
  const press = async (label, key, value) => {
    await nlms.getByRole('button', { name: label, exact: true }).click();
    await until(`${label} -> ${key} ${value}`, async () => (await filter())[key] === value);
  };
  await press('On', 'bypass', true);
  await press('On', 'bypass', false);
  // The second click undoes the first, whatever the page has heard of that.
  await nlms.getByRole('button', { name: 'On', exact: true }).dblclick();
  const resting = async () => (await filter()).bypass;
  await until('two clicks that undo each other', async () => { if (await resting()) return false; await sleep(500); return !(await resting()); });
  await press('Learn', 'adapt', false);
  // Frozen and without any memory it predicts nothing, which is 0 dB.
  await nlms.getByLabel('mu', { exact: true }).fill('0.125');
  await nlms.getByLabel('mu', { exact: true }).press('Enter');
  await until('mu 0.125', async () => (await filter()).parameters.mu === 0.125);
  const save = async (name) => {
    await nlms.getByPlaceholder('new name').fill(name);
    await nlms.getByRole('button', { name: 'Save state' }).click();
  };
  await save('before');
  await until('a saved state', async () => (await run.state()).saved.includes('before') && existsSync(join(folder, 'kept', 'before.state')));
  for (const [name, words] of [['before', /nothing is overwritten/], ['../outside', /no folder/], ['', /no folder/]]) {
    await save(name);
    await until(`a refusal of '${name}'`, async () => words.test(await nlms.locator('.refused').first().textContent().catch(() => '')));
  }
  assert.ok(!existsSync(join(folder, 'outside.state')));
  await nlms.getByRole('button', { name: 'Reset' }).click();
  await until('nothing learned', async () => Math.abs((await filter()).nmse_db) < 1e-3);
  await nlms.getByLabel('mu', { exact: true }).fill('3');
  await nlms.getByLabel('mu', { exact: true }).press('Enter');
  await until('a refusal beside the field', async () => /mu must be between 0 and 2, got 3/.test(await nlms.locator('#set-0-mu-note').textContent()));
  assert.equal((await filter()).parameters.mu, 0.125);
  await nlms.getByLabel('mu', { exact: true }).fill('0.25');
  await nlms.getByLabel('mu', { exact: true }).press('Enter');
  await until('mu 0.25', async () => (await filter()).parameters.mu === 0.25);
  await nlms.getByLabel('Kept state for nlms').selectOption('before');
  await nlms.getByRole('button', { name: 'Restore' }).click();
  await until('the state from before', async () => { const f = await filter(); return f.parameters.mu === 0.125 && Math.abs(f.nmse_db) > 1e-3; });
  await card(page, 'fklms').getByLabel('Kept state for fklms').selectOption('before');
  await card(page, 'fklms').getByRole('button', { name: 'Restore' }).click();
  await until('a refusal of the state of another filter', async () => /one of fklms/.test(await card(page, 'fklms').locator('.refused').first().textContent().catch(() => '')));
  await press('Learn', 'adapt', true);
  await until('a small error again', async () => (await filter()).nmse_db < -3);
  say('filters are switched, frozen, reset, set, saved and restored; what is refused is said beside the control');
}

async function recordingsAreKept(page, run) {
  await page.locator('#record').click();
  const name = await until('a recording', async () => (await run.state()).recording);
  await sleep(300);
  await page.locator('#record').click();
  await until('its end', async () => (await run.state()).recording === null);
  const meta = JSON.parse(readFileSync(join(folder, 'kept', `${name}.sigmf-meta`)));
  assert.ok(meta.global['core:sha512'] && readFileSync(join(folder, 'kept', `${name}.sigmf-data`)).length > 8000);
  say(`${name} was recorded`);
}

async function pageObeys(page) {
  await page.keyboard.press('p');
  await until('a pause', async () => { const n = await frames(page); await sleep(400); return (await frames(page)) === n; });
  const spectrum = page.locator('#spectrum');
  const picture = async () => (await pixels(page)).spectrum;
  await spectrum.scrollIntoViewIfNeeded();
  const all = await picture();
  let box = await spectrum.boundingBox();
  await spectrum.hover({ position: { x: box.width / 2, y: 60 } });
  const readout = page.locator('figure', { has: spectrum }).locator('.readout');
  assert.match(await readout.textContent(), /frequency .* (MHz|cycles).*prediction −?\d/s);
  await page.mouse.move(2, 2);
  await until('no cross hairs', async () => (await picture()) === all);
  await spectrum.focus();
  for (const key of ['+', 'ArrowLeft', 'ArrowUp']) {
    const before = await picture();
    await page.keyboard.press(key);
    assert.notEqual(await picture(), before, key);
  }
  await page.keyboard.press('0');
  assert.equal(await picture(), all);
  box = await spectrum.boundingBox();
  await page.mouse.move(box.x + 100, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 250, box.y + 150, { steps: 4 });
  await page.mouse.up();
  await page.mouse.move(2, 2);
  assert.notEqual(await picture(), all);
  await spectrum.dblclick({ position: { x: 80, y: 40 } });
  await page.mouse.move(2, 2);
  await until('all of it again', async () => (await picture()) === all);
  await page.evaluate(() => document.activeElement.blur());
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const was = await theme();
  await page.keyboard.press('t');
  assert.notEqual(await theme(), was);
  await page.keyboard.press('t');
  const shown = await page.locator('#shown').inputValue();
  await page.keyboard.press('f');
  assert.notEqual(await page.locator('#shown').inputValue(), shown);
  await page.keyboard.press('h');
  assert.ok(await page.locator('#keys').isVisible());
  await page.locator('#help').click();
  assert.ok(await page.locator('#keys').isHidden());
  for (const id of ['taps-part', 'taps-span', 'impulse-part', 'members-span']) {
    const values = await page.locator(`#${id} option`).evaluateAll((all) => all.map((o) => o.value));
    const canvas = id.split('-')[0];
    await page.locator('#shown').selectOption({ label: 'ensemble' });
    const before = (await pixels(page))[canvas];
    await page.locator(`#${id}`).selectOption(values.at(-1));
    await until(id, async () => (await pixels(page))[canvas] !== before);
    await page.locator(`#${id}`).selectOption(values[0]);
  }
  await page.locator('#pause').click();
  await flowing(page);
  // Another signal begins anew: most of the picture is empty again.
  const filled = () => page.evaluate(() => {
    const c = document.getElementById('waterfall');
    const middle = c.getContext('2d').getImageData(c.width / 2, 0, 1, c.height / 2).data;
    return new Set(Array.from({ length: middle.length / 4 }, (_, i) => middle.slice(4 * i, 4 * i + 3).join())).size;
  });
  await until('a waterfall', async () => (await filled()) > 8);
  await page.locator('#waterfall-signal').selectOption('error');
  assert.ok((await filled()) <= 8);
  await until('a waterfall of the error', async () => (await filled()) > 8);
  say('pause, zoom, readout, theme, choice of filter and help work, with keys and with the pointer');
}

async function connectionsComeBack(page) {
  await page.reload();
  await flowing(page);
  page.offline = true;
  await page.context().setOffline(true);
  await until('a page that says that it is not connected', async () => /not connected/.test(await page.locator('#connection').textContent()));
  await page.context().setOffline(false);
  await until('a connection', async () => (await page.locator('#connection').textContent()) === 'live');
  await flowing(page);
  page.offline = false;
  say('a reload and a lost connection come back');
}

/** Ten who read and one who does not: frames go on. */
async function manyWatch(page, run) {
  const stop = new AbortController();
  const streams = await Promise.all(Array.from({ length: 11 }, () => fetch(`${run.origin}/frames`, { headers: run.headers, signal: stop.signal })));
  const read = streams.slice(1).map(async (s) => {
    const reader = s.body.getReader();
    for (let bytes = 0; bytes < 200000;) bytes += (await reader.read()).value.length;
  });
  await Promise.all(read);
  const before = await frames(page);
  await sleep(2000);
  const rate = ((await frames(page)) - before) / 2;
  assert.ok(rate > 1, `${rate} frames a second`);
  stop.abort();
  say(`twelve viewers, one of whom does not read: ${rate} frames a second`);
}

async function looksAlright(browser, run) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [400, 2000]) {
      const page = await open(browser, run.url, { colorScheme, viewport: { width, height: 1000 } });
      await flowing(page);
      await sleep(2500);
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      const beyond = await page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
      assert.ok(beyond <= 0, `${beyond} px too wide at ${width}`);
      await shot(page, `${run.name}-${colorScheme}-${width}`);
      assert.deepEqual(page.complaints, []);
      await page.context().close();
    }
  }
  say('fits 400 and 2000 px, light and dark');
}

async function radiosObey(browser) {
  const probe = spawn(program, ['live', '--help'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let help = '';
  probe.stdout.on('data', (text) => { help += text; });
  await new Promise((done) => probe.on('exit', done));
  if (!help.includes('--device')) return say('SKIPPED: the radio, which this kaflow was built without (feature soapy)');
  run = await start('live', '--device', 'driver=kaflow-testbed', '--rate', '200000', '--tx-gain', '40', '--serve', '--keep', 'kept', '--out', 'live');
  run.name = 'live';
  const page = await open(browser, run.url);
  await everyPictureDraws(page, 9);
  const settings = async () => (await run.state()).radio.settings;
  const enter = async (label, value) => { await page.getByLabel(label, { exact: true }).fill(String(value)); await page.getByLabel(label, { exact: true }).press('Enter'); };
  for (const [label, name, value] of [['Transmit gain', 'tx-gain', 36], ['Receive gain', 'rx-gain', 38], ['Transmit level', 'tx-level', -15], ['Frequency', 'frequency', 5400.1]]) {
    await enter(label, value);
    await until(`${name} ${value}`, async () => Math.abs((await settings())[name] - value) < 1e-3);
  }
  const before = await settings();
  for (const [label, value] of [['Transmit gain', 41], ['Transmit level', -8], ['Frequency', 1e9]]) {
    await enter(label, value);
    await until(`a refusal of ${label} ${value}`, async () => new RegExp(`${label} must be between .*got ${value}`).test(await page.locator('#radio').textContent()));
  }
  assert.deepEqual(await settings(), before);
  await enter('Frequency', 5400);
  await recordingsAreKept(page, run);
  await looksAlright(browser, run);
  await page.locator('#stop').click();
  assert.equal(await run.ended, 0);
  assert.ok(existsSync(join(folder, 'live', 'report.html')));
  assert.deepEqual(page.complaints.filter((c) => !/ERR_|network error|Failed to fetch/i.test(c)), []);
  say('the radio is tuned, never above the levels of the command line');
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
if (pictures) mkdirSync(pictures, { recursive: true });
try {
  const filters = ['nlms', 'fklms', 'ensemble'].flatMap((name) => ['--filter', name]);
  const began = Date.now();
  run = await start('track', '--samples', '100000000000', ...filters, '--serve', '127.0.0.1:0', '--keep', 'kept', '--out', 'track');
  run.name = 'track';
  const page = await open(browser, run.url);
  await until('a picture', () => page.evaluate(() => window.kaflow.frames > 0 && window.kaflow.drawn > 0));
  say(`first picture ${Date.now() - began} ms after the start of the run`);
  await everyPictureDraws(page, 11);
  const before = await frames(page);
  await sleep(3000);
  say(`${(((await frames(page)) - before) / 3).toFixed(1)} frames a second with all pictures`);
  await whatIsReadAloud(page);
  await filtersObey(page, run);
  await recordingsAreKept(page, run);
  await pageObeys(page);
  await manyWatch(page, run);
  await connectionsComeBack(page);
  await looksAlright(browser, run);
  assert.deepEqual(page.complaints, []);
  page.offline = true;
  await page.locator('#stop').click();
  assert.equal(await run.ended, 0);
  assert.ok(existsSync(join(folder, 'track', 'report.html')));
  // Another run at the same place is another run.
  run = await start('track', '--samples', '100000000000', '--filter', 'nlms', '--serve', `127.0.0.1:${run.port}`, '--out', 'other');
  await until('a word about another run', async () => /another run/.test(await page.locator('#message').textContent()));
  const other = await open(browser, run.url);
  await flowing(other);
  await other.locator('#stop').click();
  assert.equal(await run.ended, 0);
  say('the run ends with its report, and another one is told apart');
  await radiosObey(browser);
  say('all is well');
} finally {
  run?.child.kill('SIGKILL');
  await run?.ended;
  await browser.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
