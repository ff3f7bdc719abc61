// The page: its connection to the run, and what belongs to no picture.

import { follow } from './frames.js';
import { Store, build as pictures } from './panels.js';
import { element, text } from './plot.js';
import { build as controls } from './controls.js';

const byId = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get('token') ?? '';
const RETRY = 1000;
const STATE = 500;
const PATIENCE = 5000;
/** Seconds of what /state says that are kept. */
const KEPT = 300;

let [store, draw, update, paused, stream, due] = [null, () => {}, () => {}, false, null, false];
/** The run does not answer though nobody has closed the stream: a cable, a computer that slept. */
let silent = false;
/** What the tests of this page look at. */
export const seen = { frames: 0, connected: false, drawn: 0 };
window.kaflow = seen;

async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { Authorization: `Bearer ${token}` } });
  if (response.ok) return response;
  const body = await response.text();
  let words = body.trim();
  try { words = JSON.parse(body).error ?? words; } catch { /* it is plain text */ }
  throw Object.assign(new Error(words || `refused with ${response.status}`), { status: response.status });
}

const call = async (command) => {
  const answer = await (await ask('/control', { method: 'POST', body: JSON.stringify(command) })).json();
  refresh().catch(() => {});
  return answer;
};

function connection(words, lost) {
  const node = byId('connection');
  if (node.textContent !== words) node.textContent = words;
  node.className = lost ? 'lost' : '';
  seen.connected = !lost;
}

/** Draws at most once for each picture of the screen. */
function redraw() {
  if (due || !store) return;
  due = true;
  requestAnimationFrame(() => { due = false; seen.drawn++; draw(); });
}

async function watch() {
  for (;;) {
    try {
      const hello = await (await ask('/hello')).json();
      if (!store || JSON.stringify(store.hello) !== JSON.stringify(hello)) begin(hello);
      byId('message').textContent = '';
      connection(paused ? 'paused' : 'live', false);
      await refresh();
      while ((paused && seen.connected) || document.hidden) await wait(200);
      if (paused) throw new Error('lost while it was paused');
      connection('live', false);
      stream = new AbortController();
      const frames = await ask('/frames', { signal: stream.signal });
      await follow(frames, (sections) => {
        seen.frames++;
        sections.forEach((s) => store.put(s));
        redraw();
      });
    } catch (error) {
      // An abort is our own doing: a pause, or nobody looks.
      if (error.name === 'AbortError' && !silent) continue;
      silent = false;
      connection('not connected: trying again', true);
      const words = error.status === 401 ? 'This address belongs to another run: open the one that kaflow printed.' : '';
      if (byId('message').textContent !== words) byId('message').textContent = words;
      await wait(RETRY);
    }
  }
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

function begin(hello) {
  store = new Store(hello);
  // That of a test bed is all of its parameters.
  const short = hello.source.length > 100 ? `${hello.source.replace(/\s+/g, ' ').slice(0, 100)}…` : hello.source;
  document.title = `kaflow: ${short}`;
  byId('source').textContent = short;
  byId('source').title = hello.source;
  const options = hello.filters.map((f, n) => element('option', { value: n }, f.name));
  byId('shown').replaceChildren(...options);
  store.shown = Math.max(0, hello.filters.findIndex((f) => f.members.length));
  byId('shown').value = store.shown;
  draw = pictures(store, byId('panels'));
  update = controls(hello, call, { table: byId('table'), recording: byId('recording'), radio: byId('radio') });
  draw();
}

async function refresh() {
  const state = await (await ask('/state', { signal: AbortSignal.timeout(PATIENCE) })).json();
  if (!store) return;
  store.states.push(state);
  while (store.states[0].elapsed < state.elapsed - KEPT || store.states[0].elapsed > state.elapsed) store.states.shift();
  update(state);
  status(state);
  if (!paused) redraw();
}

function status(state) {
  const { hello } = store;
  const entries = [['time', `${text(state.elapsed, 0.1)} s`], ['rate', `${text(state.rate / 1e6, 0.001)} MS/s`]];
  const share = state.rate / hello.sample_rate;
  if (hello.sample_rate) entries.push(['against real time', `${text(100 * share, 1)} %`, hello.radio && share < 0.95 && state.elapsed > 3]);
  if (Number.isFinite(state.level_dbfs)) entries.push(['level', `${text(state.level_dbfs, 0.1)} dBFS`], ['peak', `${text(state.peak_dbfs, 0.1)} dBFS`]);
  if (state.clipped !== null) entries.push(['clipped', state.clipped, state.clipped > 0]);
  entries.push(['in gaps', state.gap_samples, state.gap_samples > 0]);
  state.sync.forEach((sync, n) => {
    const name = state.sync.length > 1 ? `in step ${n}` : 'in step';
    const offset = hello.sample_rate ? `${text(sync.cfo * hello.sample_rate, 0.1)} Hz` : `${text(sync.cfo)} cycles a sample`;
    const how = `delay ${text(sync.delay_samples, 0.01)} samples, offset ${offset}, clock ${text(sync.clock_ppm, 0.01)} ppm`;
    const found = sync.state === 'locked' || sync.state === 'doubtful';
    entries.push([name, found ? how : [sync.state, sync.failure].filter(Boolean).join(': '), sync.state !== 'locked']);
  });
  if (state.radio) {
    const r = state.radio;
    entries.push(['queue', `${r.queue} of ${r.queue_size}`, r.queue > r.queue_size / 2], ['dropped', r.dropped, r.dropped > 0],
      ['overflows', r.overflows, r.overflows > 0], ['underflows', r.underflows, r.underflows > 0]);
  }
  byId('status').replaceChildren(...entries.map(([name, value, bad]) =>
    element('div', bad ? { class: 'bad' } : {}, element('dt', {}, name), element('dd', {}, String(value)))));
  summary(state);
}

let summarised = -Infinity;

/** For those who hear the page: every ten seconds. */
function summary(state) {
  if (performance.now() - summarised < 10000) return;
  summarised = performance.now();
  const known = store.hello.filters.map((f, n) => [f.name, state.filters[n].nmse_db]).filter(([, v]) => Number.isFinite(v)).sort((a, b) => a[1] - b[1]);
  const best = known.map(([name, v]) => `${name} ${text(v, 0.1)}`).join(', ');
  byId('summary').textContent = `After ${text(state.elapsed, 1)} s at ${text(state.rate / 1e6, 0.01)} MS/s; NMSE in dB, the best first: ${best || 'none yet'}.`;
}

function pause(on) {
  paused = on;
  byId('pause').setAttribute('aria-pressed', String(on));
  connection(on ? 'paused' : 'live', !seen.connected);
  if (on) stream?.abort();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  draw();
}

const darkly = matchMedia('(prefers-color-scheme: dark)');
const chosen = () => { try { return localStorage.getItem('theme'); } catch { return null; } };
theme(chosen() ?? (darkly.matches ? 'dark' : 'light'));
darkly.addEventListener('change', () => { if (!chosen()) theme(darkly.matches ? 'dark' : 'light'); });

byId('pause').addEventListener('click', () => pause(!paused));
byId('theme').addEventListener('click', () => {
  const name = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem('theme', name); } catch { /* then not beyond this page */ }
  theme(name);
});
byId('help').addEventListener('click', () => {
  byId('keys').hidden = !byId('keys').hidden;
  byId('help').setAttribute('aria-expanded', String(!byId('keys').hidden));
});
byId('shown').addEventListener('change', (e) => { store.shown = Number(e.target.value); draw(); });
byId('stop').addEventListener('click', async () => {
  if (!confirm('End the run and write its report?')) return;
  try { await call({ do: 'stop' }); } catch (error) { byId('message').textContent = error.message; }
});
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  const button = { p: 'pause', t: 'theme', h: 'help' }[e.key];
  if (button) byId(button).click();
  if (e.key === 'f' && store) {
    store.shown = (store.shown + 1) % store.hello.filters.length;
    byId('shown').value = store.shown;
    draw();
  }
});
document.addEventListener('visibilitychange', () => { if (document.hidden) stream?.abort(); });

setInterval(() => {
  if (!store || !seen.connected || document.hidden) return;
  refresh().catch(() => {
    silent = true;
    stream?.abort();
    if (paused) connection('not connected: trying again', true);
  });
}, STATE);
watch();
