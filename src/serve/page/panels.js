// What each picture shows.

import { KIND, rows } from './frames.js';
import { Plot, colour, element, range, text } from './plot.js';

/** What all pictures draw from: hello, the newest section of each kind and filter, the shown filter, and the states so far. */
export class Store {
  constructor(hello) {
    Object.assign(this, { hello, shown: 0, states: [] });
    this.sections = new Map();
  }
  put(section) { this.sections.set(section.kind * 65536 + section.filter, section); }
  get(kind, filter = this.shown) { return this.sections.get(kind * 65536 + filter); }
  /** Seconds, or samples where the rate is not known. */
  time(sample) { return this.hello.sample_rate ? sample / this.hello.sample_rate : sample; }
  get filter() { return this.hello.filters[this.shown]; }
}

const TIME = (hello) => (hello.sample_rate ? { label: 'time', unit: 's' } : { label: 'sample', unit: '' });
const look = (style, name) => ({ name, colour: style.colour, dash: style.dash });

function frequencies(store, n) {
  const rate = store.hello.sample_rate;
  const tuned = store.states.at(-1)?.radio?.settings.frequency;
  const centre = tuned ? 1e6 * tuned : store.hello.centre_hz;
  const step = rate ? rate / 1e6 / n : 1 / n;
  return Float64Array.from({ length: n }, (_, i) => (centre ?? 0) / 1e6 + (i - n / 2) * step);
}

const FREQUENCY = (hello) => (hello.sample_rate ? { label: 'frequency', unit: 'MHz' } : { label: 'cycles a sample', unit: '' });
const DENSITY = (hello) => ({ label: 'density', unit: hello.sample_rate ? 'dBFS/Hz' : 'dBFS' });
const SPECTRA = ['target', 'prediction', 'error'];

function spectrum(store) {
  const found = SPECTRA.map((kind) => [kind, store.get(KIND[kind])]).filter(([, s]) => s);
  if (!found.length) return {};
  const x = frequencies(store, found[0][1].numbers.length);
  const lines = found.map(([kind, s]) => {
    const name = kind === 'target' ? store.hello.target : kind;
    // Wide, to be seen behind a prediction that is nearly the same.
    const wide = kind === 'target' ? { width: 3.5, alpha: 0.5 } : { width: 1.3 };
    return { ...look(store.hello.looks[name], name), dash: [], ...wide, x, y: s.numbers };
  });
  return { x: [x[0], x[x.length - 1]], y: range(lines.map((l) => l.y)), lines };
}

/** Rows of colour, the newest on top. */
class Waterfall {
  constructor(height = 160) {
    Object.assign(this, { height, times: [], image: document.createElement('canvas'), level: null, kind: 'target', filter: 0, last: -1 });
  }
  clear() { this.times = []; this.level = null; this.image.width = 0; this.last = -1; }
  push(store) {
    const s = store.get(KIND[this.kind]);
    if (this.filter !== store.shown) this.clear();
    this.filter = store.shown;
    if (!s || s.sample === this.last) return;
    this.last = s.sample;
    const n = s.numbers.length;
    if (this.image.width !== n) Object.assign(this.image, { width: n, height: this.height });
    const now = range([s.numbers], 50, 0.02);
    this.level = this.level && now ? this.level.map((v, i) => 0.95 * v + 0.05 * now[i]) : now;
    const c = this.image.getContext('2d', { willReadFrequently: true });
    c.drawImage(this.image, 0, 1);
    const row = c.createImageData(n, 1);
    const map = store.hello.map;
    for (let i = 0; i < n; i++) {
      const at = Math.max(0, Math.min(1, (s.numbers[i] - this.level[0]) / (this.level[1] - this.level[0])));
      row.data.set([...map[Math.round(at * (map.length - 1))], 255], 4 * i);
    }
    c.putImageData(row, 0, 0);
    this.times.unshift(performance.now() / 1000);
    this.times.length = Math.min(this.times.length, this.height);
  }
  scene(store) {
    if (!this.times.length) return {};
    const f = frequencies(store, this.image.width);
    const each = this.times.length > 1 ? (this.times[0] - this.times[this.times.length - 1]) / (this.times.length - 1) : 0.1;
    const [x, y] = [[f[0], f[f.length - 1]], [-each * this.height, 0]];
    return { x, y, heat: { image: this.image, x, y } };
  }
}

function constellation(store) {
  const [a, b] = [store.get(KIND.oneTap), store.get(KIND.equalised)];
  if (!a) return { note: 'no two symbols in a row yet' };
  const cloud = (s, name, hex) => {
    const n = s.numbers.length >> 1;
    return { name, colour: hex, x: Float32Array.from({ length: n }, (_, i) => s.numbers[2 * i]), y: Float32Array.from({ length: n }, (_, i) => s.numbers[2 * i + 1]) };
  };
  const dots = [cloud(a, 'one tap a carrier', store.hello.looks.prediction.colour)];
  if (b?.numbers.length) dots.push(cloud(b, store.filter.name, store.filter.colour));
  const ideal = store.hello.ideal;
  const outer = ideal.reduce((m, p) => Math.max(m, Math.abs(p[0]), Math.abs(p[1])), 0);
  const most = range(dots.flatMap((d) => [d.x, d.y]), 500, 0.1);
  const reach = Math.max(1.2 * outer, Math.min(2.2 * outer, Math.max(-most[0], most[1])));
  return { x: [-reach, reach], y: [-reach, reach], dots, crosses: { points: ideal, colour: store.hello.looks.error.colour } };
}

function nmse(store) {
  const [lines, bands] = [[], []];
  store.hello.filters.forEach((filter, n) => {
    const s = store.get(KIND.nmse, n);
    if (!s) return;
    const table = rows(s);
    const x = table.map((r) => store.time(r.at));
    const column = (i) => table.map((r) => r.values[i]);
    lines.push({ ...look(filter, filter.name), width: n === store.shown ? 2.8 : 1.6, x, y: column(0) });
    bands.push({ colour: filter.colour, x, low: column(1), high: column(2) });
  });
  const x = range(lines.map((l) => l.x), 0, 0);
  return lines.length ? { x, y: range(lines.map((l) => l.y), 100, 0.1), lines, bands, steady: false } : {};
}

function amplifier(part) {
  return (store) => {
    const triple = (s) => {
      const n = Math.floor(s.numbers.length / 3);
      const column = (k) => Float32Array.from({ length: n }, (_, i) => s.numbers[3 * i + k]);
      return { x: column(0), y: column(part) };
    };
    const order = [store.shown, ...store.hello.filters.keys()];
    const source = order.find((n) => store.get(KIND.dots, n)?.numbers.length);
    const dots = source === undefined ? [] : [{ name: 'measured', colour: store.hello.looks.measured.colour, ...triple(store.get(KIND.dots, source)) }];
    const lines = [];
    store.hello.filters.forEach((filter, n) => {
      const s = store.get(KIND.curve, n);
      if (s?.numbers.length) lines.push({ ...look(filter, filter.name), width: n === store.shown ? 2.8 : 1.8, ...triple(s) });
    });
    if (!dots.length && !lines.length) return { note: 'through echoes, only a filter that learns a curve sees the amplifier' };
    const x = range([...dots, ...lines].map((d) => d.x), 0, 0.03);
    x[0] = Math.max(0, x[0]);
    const most = lines.map((l) => l.y);
    return { x, y: range([...most, ...dots.map((d) => d.y)], part === 2 ? 60 : 0, 0.1), dots, lines };
  };
}

const PART = {
  magnitude: { label: 'magnitude', unit: '', of: (re, im) => Math.hypot(re, im) },
  phase: { label: 'phase', unit: '°', of: (re, im) => (Math.atan2(im, re) * 180) / Math.PI },
};

function taps(store, choice) {
  const s = store.get(choice.span === 'run' ? KIND.tapsOfRun : KIND.taps);
  if (!s) return { note: `${store.filter.name} has no taps` };
  const [table, part] = [rows(s), PART[choice.part]];
  const x = table.map((r) => store.time(r.at));
  const n = table[0].values.length >> 1;
  const lines = [];
  for (let k = 0; k < Math.min(n, 12); k++) {
    const style = store.hello.cycle[k % store.hello.cycle.length];
    lines.push({ ...look(style, `tap ${k}`), x, y: table.map((r) => part.of(r.values[2 * k], r.values[2 * k + 1])) });
  }
  return { x: range([x], 0, 0), y: choice.part === 'phase' ? [-190, 190] : range(lines.map((l) => l.y), 0, 0.08), lines, steady: false };
}

function impulse(store, choice) {
  const s = store.get(KIND.taps);
  if (!s) return { note: `${store.filter.name} has no taps` };
  const [last, part] = [rows(s).at(-1).values, PART[choice.part]];
  const n = last.length >> 1;
  const at = (k) => part.of(last[2 * k], last[2 * k + 1]);
  const delay = store.hello.advance ?? 0;
  const lines = Array.from({ length: n }, (_, k) => ({ name: '', colour: store.filter.colour, width: 3, x: [k - delay, k - delay], y: [0, at(k)] }));
  const tops = { x: Array.from({ length: n }, (_, k) => k - delay), y: Array.from({ length: n }, (_, k) => at(k)) };
  const dots = [{ name: '', colour: store.filter.colour, size: 7, alpha: 1, ...tops }];
  lines.push({ name: part.label, colour: store.filter.colour, width: 0.01, alpha: 0, ...tops });
  const y = choice.part === 'phase' ? [-190, 190] : range([tops.y, [0]], 0, 0.1);
  return { x: [-delay - 0.7, n - delay - 0.3], y, lines, dots };
}

function members(store, choice) {
  const n = store.hello.filters.findIndex((f, i) => (i === store.shown && f.members.length));
  const filter = n >= 0 ? n : store.hello.filters.findIndex((f) => f.members.length);
  const s = store.get(choice.span === 'run' ? KIND.membersOfRun : KIND.members, filter);
  if (!s) return {};
  const table = rows(s);
  const x = table.map((r) => store.time(r.at));
  const lines = store.hello.filters[filter].members.map((name, k) =>
    ({ ...look(store.hello.cycle[k % store.hello.cycle.length], name), x, y: table.map((r) => r.values[k]) }));
  return { x: range([x], 0, 0), y: [-0.03, 1.03], lines, steady: false };
}

/** Lines over the last minutes from what /state says. */
function over(pick) {
  return (store) => {
    if (store.states.length < 2) return {};
    const x = store.states.map((s) => s.elapsed);
    const names = ['learned', 'prediction', 'tx', 'error'];
    const lines = Object.entries(pick(store)).map(([name, of], k) =>
      ({ ...look(store.hello.looks[name === 'real time' ? 'floor' : names[k % names.length]], name), x, y: store.states.map(of) }));
    const known = lines.filter((l) => l.y.some(Number.isFinite));
    if (!known.length) return {};
    return { x: [x[0], x[x.length - 1]], y: range([...known.map((l) => l.y), [0]]), lines: known, steady: false };
  };
}

const rates = over((store) => ({
  filters: (s) => s.rate / 1e6,
  ...(store.hello.sample_rate ? { 'real time': () => store.hello.sample_rate / 1e6 } : {}),
}));
const losses = over((store) => ({
  'samples in gaps': (s) => s.gap_samples,
  ...(store.hello.radio ? { 'dropped samples': (s) => s.radio.dropped, 'samples in the queue': (s) => s.radio.queue } : {}),
}));

const SPAN = { name: 'over', values: { stretch: 'last stretch', run: 'whole run' }, key: 'span' };
const PARTS = { name: 'show', values: { magnitude: 'magnitude', phase: 'phase' }, key: 'part' };

/** Builds the pictures that this run has something for; gives a function that draws them all. */
export function build(store, into) {
  const { hello } = store;
  const waterfall = new Waterfall();
  const signals = Object.fromEntries(SPECTRA.map((k) => [k, k === 'target' ? hello.target : k]));
  const all = [
    { id: 'spectrum', title: 'Spectrum', x: FREQUENCY(hello), y: DENSITY(hello), scene: spectrum },
    { id: 'waterfall', title: 'Waterfall', x: FREQUENCY(hello), y: { label: 'time', unit: 's' }, choices: [{ name: 'of', values: signals, key: 'signal' }],
      scene: (s, choice) => { if (waterfall.kind !== choice.signal) waterfall.clear(); waterfall.kind = choice.signal; waterfall.push(s); return waterfall.scene(s); } },
    { id: 'nmse', title: 'Prediction error over time', x: TIME(hello), y: { label: 'NMSE', unit: 'dB' }, scene: nmse, note: 'Shaded: 95 % interval of the mean over each point.' },
    { id: 'constellation', title: 'Constellation', x: { label: 'in phase' }, y: { label: 'quadrature' }, scene: constellation, equal: true, hidden: !hello.ideal.length },
    { id: 'am-am', title: 'AM/AM', x: { label: 'input amplitude' }, y: { label: 'output amplitude' }, scene: amplifier(1), hidden: hello.equalize },
    { id: 'am-pm', title: 'AM/PM', x: { label: 'input amplitude' }, y: { label: 'phase shift', unit: '°' }, scene: amplifier(2), hidden: hello.equalize || hello.real },
    { id: 'taps', title: 'Taps over time', x: TIME(hello), choices: [PARTS, SPAN], scene: taps },
    { id: 'impulse', title: 'Impulse response', x: { label: 'delay', unit: 'samples' }, choices: [PARTS], scene: impulse },
    { id: 'members', title: 'Weights of the members', x: TIME(hello), y: { label: 'weight' }, choices: [SPAN], scene: members, hidden: !hello.filters.some((f) => f.members.length) },
    { id: 'rate', title: 'Rate against real time', x: { label: 'time', unit: 's' }, y: { label: 'rate', unit: 'MS/s' }, scene: rates },
    { id: 'losses', title: 'Gaps, drops and queue', x: { label: 'time', unit: 's' }, y: { label: 'samples' }, scene: losses },
  ].filter((p) => !p.hidden);
  into.replaceChildren();
  const panels = all.map((panel) => new Panel(panel, store, into));
  return () => panels.forEach((panel) => panel.draw());
}

class Panel {
  constructor(panel, store, into) {
    Object.assign(this, { ...panel, store, choice: {}, told: 0, legend: '' });
    const caption = element('figcaption', {}, element('h3', { id: `${this.id}-title` }, this.title));
    for (const { name, values, key } of this.choices ?? []) {
      const select = element('select', { id: `${this.id}-${key}` });
      Object.entries(values).forEach(([value, shown]) => select.append(element('option', { value }, shown)));
      this.choice[key] = select.value;
      select.addEventListener('change', () => { this.choice[key] = select.value; this.plot.view = null; this.draw(); });
      caption.append(element('label', {}, `${name} `, select));
    }
    const canvas = element('canvas', { id: this.id, role: 'img', tabindex: '0', 'aria-labelledby': `${this.id}-title ${this.id}-text` });
    const readout = element('p', { class: 'readout', 'aria-hidden': 'true' });
    this.words = element('p', { id: `${this.id}-text`, class: 'skip' });
    this.names = element('ul', { class: 'legend', 'aria-hidden': 'true' });
    into.append(element('figure', {}, caption, canvas, readout, this.names, this.words));
    if (this.note) this.names.before(element('p', { class: 'quiet' }, this.note));
    this.plot = new Plot(canvas, readout, { x: this.x, y: this.y ?? PART.magnitude }, this.equal);
  }

  draw() {
    if (!this.y) this.plot.axes.y = PART[this.choice.part];
    const scene = this.scene(this.store, this.choice);
    this.plot.draw(scene);
    this.tell(scene);
  }

  /** The legend, and what a screen reader reads, not more often than every two seconds. */
  tell(scene) {
    const named = [...(scene.lines ?? []), ...(scene.dots ?? [])].filter((l) => l.name);
    const key = named.map((l) => l.name + colour(l.colour) + (l.dash ?? '')).join();
    if (key !== this.legend) {
      this.legend = key;
      this.names.replaceChildren(...named.map((l) => element('li', {}, swatch(l), l.name)));
    }
    if (performance.now() - this.told < 2000) return;
    this.told = performance.now();
    const last = (l) => `${l.name} ${text(l.y[l.y.length - 1])}`;
    const lines = (scene.lines ?? []).filter((l) => l.name && l.y.length);
    const y = this.plot.axes.y;
    const between = scene.y ? `${y.label} from ${text(scene.y[0])} to ${text(scene.y[1])} ${y.unit ?? ''}` : scene.note ?? 'nothing yet';
    const mean = (l) => `${l.name} mean ${text(l.y.reduce((a, b) => a + b, 0) / l.y.length)}`;
    this.words.textContent = `${between}. ${lines.map(this.id === 'spectrum' ? mean : last).join('; ')}`;
  }
}

/** A piece of the line, or a dot. */
function swatch({ colour: hex, dash }) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const part = document.createElementNS(svg.namespaceURI, dash ? 'line' : 'circle');
  const set = (node, values) => Object.entries(values).forEach(([k, v]) => node.setAttribute(k, v));
  set(svg, { width: dash ? 22 : 8, height: 8 });
  if (dash) set(part, { x2: 22, y1: 4, y2: 4, stroke: colour(hex), 'stroke-width': 2.2, 'stroke-dasharray': dash.map((d) => 1.4 * d).join(' ') });
  else set(part, { cx: 4, cy: 4, r: 3, fill: colour(hex) });
  svg.append(part);
  return svg;
}
