// Axes, lines, dots and heat on a canvas; zoom; what is under the pointer.

const PAD = { left: 58, right: 10, top: 8, bottom: 36 };

/** A new element of the page. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([k, v]) => made.setAttribute(k, v));
  made.append(...children);
  return made;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = () => document.documentElement.dataset.theme === 'dark';

/** A colour of the report, light enough for the dark theme. */
export function colour(hex) {
  if (!dark()) return hex;
  let rgb = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const light = (c) => (0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]) / 255;
  while (light(rgb) < 0.42) rgb = rgb.map((c) => c + 0.12 * (255 - c));
  return `rgb(${rgb.map(Math.round).join(',')})`;
}

/** A number as text, as long as its neighbour at a distance of step differs. */
export function text(value, step) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.max(Math.abs(value), Math.abs(step ?? value));
  if (value !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2).replace('-', '−');
  const digits = step ? Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.abs(step)) - 1e-9))) : 3;
  return value.toFixed(digits).replace('-', '−');
}

function ticks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return { step, found };
}

/** The range of what is finite in several lists, one in `strays` left out on each side, with some room. */
export function range(lists, strays = 0, room = 0.06) {
  let all = [];
  for (const list of lists) for (const v of list) if (Number.isFinite(v)) all.push(v);
  if (!all.length) return null;
  if (strays) all = Float64Array.from(all).sort();
  let low = strays ? all[Math.floor(all.length / strays)] : all.reduce((a, b) => Math.min(a, b));
  let high = strays ? all[all.length - 1 - Math.floor(all.length / strays)] : all.reduce((a, b) => Math.max(a, b));
  const space = high > low ? (high - low) * room : Math.abs(high) * 0.1 || 1;
  return [low - space, high + space];
}

export class Plot {
  /** axes: { x, y } with label and unit; equal: both have one scale. */
  constructor(canvas, readout, axes, equal = false) {
    Object.assign(this, { canvas, readout, axes, equal, scene: {}, view: null, pointer: null, drag: null, shown: { x: [0, 1], y: [0, 1] } });
    this.context = canvas.getContext('2d');
    new ResizeObserver(() => this.paint()).observe(canvas);
    canvas.addEventListener('pointermove', (e) => { this.pointer = this.place(e); this.paint(); });
    canvas.addEventListener('pointerleave', () => { this.pointer = null; this.readout.textContent = ''; this.paint(); });
    canvas.addEventListener('pointerdown', (e) => {
      if (e.button !== 0) return;
      canvas.setPointerCapture(e.pointerId);
      this.drag = this.place(e);
    });
    canvas.addEventListener('pointercancel', () => { this.drag = null; });
    canvas.addEventListener('pointerup', (e) => this.drop(this.place(e)));
    canvas.addEventListener('dblclick', () => this.all());
    canvas.addEventListener('wheel', (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.place(e));
    }, { passive: false });
    canvas.addEventListener('keydown', (e) => this.key(e));
  }

  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
    if (move) this.pan(...move);
    else if (e.key === '+' || e.key === '=') this.zoom(0.8);
    else if (e.key === '-') this.zoom(1.25);
    else if (e.key === '0' || e.key === 'Escape') this.all();
    else return;
    e.preventDefault();
  }

  all() { this.view = null; this.paint(); }

  pan(dx, dy) {
    const { x, y } = this.shown;
    const by = (r, d) => r.map((v) => v + 0.15 * d * (r[1] - r[0]));
    this.view = { x: by(x, dx), y: by(y, dy) };
    this.paint();
  }

  zoom(factor, at) {
    const { x, y } = this.shown;
    const around = (r, c) => r.map((v) => c + (v - c) * factor);
    const [cx, cy] = at ? this.data(at) : [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2];
    this.view = { x: around(x, cx), y: around(y, cy) };
    this.paint();
  }

  place(e) {
    const box = this.canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  }

  /** Zooms to what was dragged over, unless it was only a click. */
  drop(to) {
    const from = this.drag;
    this.drag = null;
    if (!from || Math.abs(from[0] - to[0]) < 8 || Math.abs(from[1] - to[1]) < 8) return this.paint();
    const [a, b] = [this.data(from), this.data(to)];
    const sorted = (p, q) => [Math.min(p, q), Math.max(p, q)];
    this.view = { x: sorted(a[0], b[0]), y: sorted(a[1], b[1]) };
    this.paint();
  }

  get box() {
    return { left: PAD.left, top: PAD.top, width: this.canvas.clientWidth - PAD.left - PAD.right, height: this.canvas.clientHeight - PAD.top - PAD.bottom };
  }

  data([px, py]) {
    const { left, top, width, height } = this.box;
    const { x, y } = this.shown;
    return [x[0] + ((px - left) / width) * (x[1] - x[0]), y[1] - ((py - top) / height) * (y[1] - y[0])];
  }

  /** Shows a scene: x and y ranges, bands, lines, dots, crosses, heat, note. Ranges widen at once and shrink only when much too wide. */
  draw(scene) {
    for (const axis of ['x', 'y']) {
      const [now, before] = [scene[axis], this.scene[axis]];
      if (!now || !before || scene.steady === false) continue;
      const [span, old] = [now[1] - now[0], before[1] - before[0]];
      const inside = now[0] >= before[0] - 0.02 * old && now[1] <= before[1] + 0.02 * old;
      if (inside && span > 0.6 * old) scene[axis] = before;
    }
    this.scene = scene;
    this.paint();
  }

  paint() {
    const { canvas, context: c, scene } = this;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    const box = this.box;
    if (box.width < 20 || box.height < 20) return;
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(h * scale);
    }
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, w, h);
    c.font = '12px system-ui, "DejaVu Sans", sans-serif';
    if (!scene.x || !scene.y) {
      c.fillStyle = css('--quiet');
      c.textAlign = 'center';
      c.fillText(scene.note ?? 'nothing yet', w / 2, h / 2);
      return;
    }
    this.shown = this.view ?? this.fit(scene, box);
    const { x, y } = this.shown;
    const X = (v) => box.left + ((v - x[0]) / (x[1] - x[0])) * box.width;
    const Y = (v) => box.top + ((y[1] - v) / (y[1] - y[0])) * box.height;
    this.grid(X, Y, box);
    c.save();
    c.beginPath();
    c.rect(box.left, box.top, box.width, box.height);
    c.clip();
    if (scene.heat) {
      const { image, x: hx, y: hy } = scene.heat;
      c.imageSmoothingEnabled = false;
      c.drawImage(image, X(hx[0]), Y(hy[1]), X(hx[1]) - X(hx[0]), Y(hy[0]) - Y(hy[1]));
    }
    for (const band of scene.bands ?? []) this.band(band, X, Y);
    for (const dots of scene.dots ?? []) this.dots(dots, X, Y);
    for (const line of scene.lines ?? []) this.line(line, X, Y);
    for (const [cx, cy] of scene.crosses?.points ?? []) {
      c.strokeStyle = colour(scene.crosses.colour);
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(X(cx) - 4, Y(cy)); c.lineTo(X(cx) + 4, Y(cy));
      c.moveTo(X(cx), Y(cy) - 4); c.lineTo(X(cx), Y(cy) + 4);
      c.stroke();
    }
    c.restore();
    c.strokeStyle = css('--frame');
    c.lineWidth = 1;
    c.strokeRect(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1);
    if (this.pointer) this.under(X, Y, box);
  }

  fit({ x, y }, box) {
    if (!this.equal) return { x, y };
    const unit = Math.max((x[1] - x[0]) / box.width, (y[1] - y[0]) / box.height);
    const wide = (r, n) => [(r[0] + r[1] - n * unit) / 2, (r[0] + r[1] + n * unit) / 2];
    return { x: wide(x, box.width), y: wide(y, box.height) };
  }

  grid(X, Y, box) {
    const { context: c, shown: { x, y }, axes } = this;
    c.lineWidth = 1;
    const [xt, yt] = [ticks(...x, box.width / 60), ticks(...y, box.height / 36)];
    c.strokeStyle = css('--grid');
    c.beginPath();
    for (const v of xt.found) { c.moveTo(Math.round(X(v)) + 0.5, box.top); c.lineTo(Math.round(X(v)) + 0.5, box.top + box.height); }
    for (const v of yt.found) { c.moveTo(box.left, Math.round(Y(v)) + 0.5); c.lineTo(box.left + box.width, Math.round(Y(v)) + 0.5); }
    c.stroke();
    c.fillStyle = css('--ink');
    c.textAlign = 'center';
    for (const v of xt.found) c.fillText(text(v, xt.step), Math.max(box.left + 8, Math.min(X(v), box.left + box.width - 12)), box.top + box.height + 15);
    c.textAlign = 'right';
    for (const v of yt.found) c.fillText(text(v, yt.step), box.left - 5, Y(v) + 4);
    const label = (a) => (a.unit ? `${a.label} / ${a.unit}` : a.label);
    c.fillStyle = css('--quiet');
    c.textAlign = 'center';
    c.fillText(label(axes.x), box.left + box.width / 2, box.top + box.height + 31);
    c.save();
    c.translate(11, box.top + box.height / 2);
    c.rotate(-Math.PI / 2);
    c.fillText(label(axes.y), 0, 0);
    c.restore();
  }

  line({ x, y, colour: hex, dash = [], width = 1.8, alpha = 1 }, X, Y) {
    const c = this.context;
    c.strokeStyle = colour(hex);
    c.globalAlpha = alpha;
    c.lineWidth = width;
    c.setLineDash(dash.map((d) => d * width));
    c.beginPath();
    let down = false;
    for (let i = 0; i < y.length; i++) {
      const there = Number.isFinite(y[i]);
      if (there) down ? c.lineTo(X(x[i]), Y(y[i])) : c.moveTo(X(x[i]), Y(y[i]));
      down = there;
    }
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  band({ x, low, high, colour: hex }, X, Y) {
    const c = this.context;
    const known = [...x.keys()].filter((i) => Number.isFinite(low[i]) && Number.isFinite(high[i]));
    if (known.length < 2) return;
    c.fillStyle = colour(hex);
    c.globalAlpha = 0.18;
    c.beginPath();
    for (const i of known) c.lineTo(X(x[i]), Y(high[i]));
    for (const i of known.reverse()) c.lineTo(X(x[i]), Y(low[i]));
    c.fill();
    c.globalAlpha = 1;
  }

  dots({ x, y, colour: hex, size = 2.4, alpha = 0.45 }, X, Y) {
    const c = this.context;
    c.fillStyle = colour(hex);
    c.globalAlpha = alpha;
    for (let i = 0; i < y.length; i++) c.fillRect(X(x[i]) - size / 2, Y(y[i]) - size / 2, size, size);
    c.globalAlpha = 1;
  }

  /** Cross hairs, what is being dragged over, and the values there. */
  under(X, Y, box) {
    const { context: c, pointer: [px, py], drag, axes, scene } = this;
    if (px < box.left || px > box.left + box.width || py < box.top || py > box.top + box.height) return;
    c.strokeStyle = css('--quiet');
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(px, box.top); c.lineTo(px, box.top + box.height);
    c.moveTo(box.left, py); c.lineTo(box.left + box.width, py);
    c.stroke();
    if (drag) c.strokeRect(drag[0], drag[1], px - drag[0], py - drag[1]);
    c.setLineDash([]);
    const [x, y] = this.data([px, py]);
    const fine = (r, n) => (r[1] - r[0]) / n;
    const unit = (a) => (a.unit ? ` ${a.unit}` : '');
    const parts = [`${axes.x.label} ${text(x, fine(this.shown.x, box.width))}${unit(axes.x)}`];
    const step = fine(this.shown.y, 10 * box.height);
    const named = (scene.lines ?? []).filter((l) => l.name && l.x.length);
    for (const l of named.slice(0, 10)) {
      const n = nearest(l.x, x);
      if (Math.abs(X(l.x[n]) - px) < 40) parts.push(`${l.name} ${text(l.y[n], step)}`);
    }
    if (named.length) parts.push(`(${unit(axes.y).trim() || axes.y.label})`);
    else parts.push(`${axes.y.label} ${text(y, step)}${unit(axes.y)}`);
    this.readout.textContent = parts.join(', ');
  }
}

function nearest(sorted, x) {
  let [a, b] = [0, sorted.length - 1];
  while (b - a > 1) {
    const m = (a + b) >> 1;
    if (sorted[m] <= x) a = m; else b = m;
  }
  return Math.abs(sorted[a] - x) <= Math.abs(sorted[b] - x) ? a : b;
}
