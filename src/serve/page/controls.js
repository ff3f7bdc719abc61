// What can be done: switches, parameters, states, recordings, the radio.

import { colour, element, text } from './plot.js';

/** Shows beside a control what came of it; refused is what the run says against it. */
async function attempt(call, command, note, done = '') {
  note.textContent = '';
  try {
    await call(command);
    note.className = 'done';
    note.textContent = done;
    return true;
  } catch (error) {
    note.className = 'refused';
    note.textContent = error.message;
    return false;
  }
}

const note = () => element('p', { class: 'done', role: 'status' });
const say = (node, words) => { if (node.textContent !== words) node.textContent = words; };

/** A switch; `press` gives whether the run did as it was asked. It shows what was asked for until the run has got there, so that a second click undoes the first however late the next state comes. */
class Toggle {
  constructor(label, title, press) {
    this.button = element('button', { type: 'button', title, 'aria-pressed': 'false' }, label);
    this.order = Promise.resolve();
    this.button.addEventListener('click', () => {
      const asked = this.button.getAttribute('aria-pressed') !== 'true';
      this.asked = { on: asked, until: Date.now() + 2000 };
      this.show(asked);
      this.order = this.order.then(async () => {
        if (await press(asked)) return;
        this.asked = undefined;
        this.show(!asked);
      });
    });
  }
  show(on) { this.button.setAttribute('aria-pressed', String(on)); }
  update(on) {
    if (this.asked && on !== this.asked.on && Date.now() < this.asked.until) return;
    this.asked = undefined;
    this.show(on);
  }
}

const bounds = ({ low, high, usual }) => {
  const round = (v) => plain(Number(v.toPrecision(usual ? 3 : 9)));
  const [a, b] = [Number.isFinite(low), Number.isFinite(high)];
  if (a && b) return `${usual ? 'usually ' : ''}${round(low)} to ${round(high)}`;
  return a ? `from ${round(low)}` : b ? `up to ${round(high)}` : '';
};
const plain = (v) => String(Number(v.toPrecision(9)));

/** A number with its range and unit; sent when it is entered, and put back to what the run has when it is refused only by the user. */
class Field {
  constructor(id, { name, label, about, unit, usual, low, high }, send) {
    this.input = element('input', { type: 'number', step: 'any', id, title: about ?? '' });
    for (const [key, value] of [['min', low], ['max', high]]) if (!usual && Number.isFinite(value)) this.input.setAttribute(key, value);
    this.note = note();
    this.note.id = `${id}-note`;
    this.input.setAttribute('aria-describedby', this.note.id);
    const hint = [bounds({ low, high, usual }), unit].filter(Boolean).join(' ');
    this.row = element('div', { class: 'row' }, element('label', { for: id }, label ?? name), this.input, element('span', { class: 'unit' }, hint), this.note);
    this.input.addEventListener('change', async () => {
      const value = this.input.valueAsNumber;
      this.dirty = true;
      if (Number.isNaN(value)) {
        this.note.className = 'refused';
        this.note.textContent = `${label ?? name} must be a number`;
      } else if (await send(value, this.note)) {
        this.dirty = false;
        this.input.removeAttribute('aria-invalid');
        return;
      }
      this.input.setAttribute('aria-invalid', 'true');
    });
  }
  update(value) {
    if (this.dirty || document.activeElement === this.input || !Number.isFinite(value)) return;
    const shown = plain(value);
    if (this.input.value !== shown) this.input.value = shown;
  }
}

class Card {
  constructor(filter, n, hello, call) {
    const { name } = filter;
    this.filter = filter;
    this.note = note();
    const ask = (command, done) => attempt(call, { filter: name, ...command }, this.note, done);
    this.on = new Toggle('On', 'Off: the input is passed on as the prediction, and the filter rests', (on) => ask({ do: 'bypass', on: !on }));
    this.learn = new Toggle('Learn', 'Off: frozen, predicts and learns nothing', (on) => ask({ do: 'adapt', on }));
    const reset = element('button', { type: 'button', title: 'Forgets what was learned' }, 'Reset');
    reset.addEventListener('click', () => ask({ do: 'reset' }, 'has forgotten what it had learned'));
    this.figures = element('p', { class: 'figures' });
    const live = filter.parameters.filter((p) => p.live);
    this.fields = new Map(live.map((p) => [p.name, new Field(`set-${n}-${p.name}`, p, (value, at) =>
      attempt(call, { do: 'set', filter: name, parameter: p.name, value }, at, `set to ${plain(value)}`))]));
    this.card = element('article', { class: 'filter', 'aria-label': name }, element('h3', {}, name), ' ', element('span', { class: 'about' }, filter.about),
      this.figures, element('div', { class: 'row' }, this.on.button, this.learn.button, reset), this.note, ...[...this.fields.values()].map((f) => f.row));
    const fixed = filter.parameters.filter((p) => !p.live && p.value !== null).map((p) => `${p.name} ${p.value}`);
    if (fixed.length) this.card.append(element('p', { class: 'quiet' }, `Fixed while it runs: ${fixed.join(', ')}`));
    if (hello.keep) this.keep(n, ask);
  }

  keep(n, ask) {
    const name = element('input', { type: 'text', id: `save-${n}`, placeholder: 'new name', maxlength: '100', 'aria-label': `New name for the state of ${this.filter.name}` });
    const save = element('button', { type: 'button' }, 'Save state');
    save.addEventListener('click', async () => { if (await ask({ do: 'save', name: name.value }, `saved as ${name.value}`)) name.value = ''; });
    name.addEventListener('keydown', (e) => { if (e.key === 'Enter') save.click(); });
    this.saved = element('select', { id: `saved-${n}`, 'aria-label': `Kept state for ${this.filter.name}` });
    this.load = element('button', { type: 'button' }, 'Restore');
    this.load.addEventListener('click', () => ask({ do: 'load', name: this.saved.value }, `goes on from ${this.saved.value}`));
    this.card.append(element('div', { class: 'row' }, name, save, this.saved, this.load));
  }

  update(state, all) {
    this.card.style.borderLeftColor = colour(this.filter.colour);
    this.on.update(!state.bypass);
    this.learn.update(state.adapt);
    const db = (v) => (Number.isFinite(v) ? `${text(v, 0.01)} dB` : '–');
    const interval = Number.isFinite(state.low) ? ` (${text(state.low, 0.1)} to ${text(state.high, 0.1)})` : '';
    const figures = [['NMSE now', db(state.nmse_db) + interval], ['average', db(state.nmse_total_db)], ['samples', state.samples.toLocaleString('en')], ['size', state.centres]];
    say(this.figures, '');
    this.figures.replaceChildren(...figures.map(([k, v]) => element('span', {}, `${k} `, element('b', {}, String(v)))));
    for (const [name, field] of this.fields) field.update(state.parameters[name]);
    if (!this.saved) return;
    const names = all.saved.join('\n');
    if (names !== this.names) {
      this.names = names;
      const before = this.saved.value;
      this.saved.replaceChildren(...all.saved.map((s) => element('option', { value: s }, s)));
      if (all.saved.includes(before)) this.saved.value = before;
      this.load.disabled = !all.saved.length;
    }
  }
}

/** Builds all controls; gives a function that shows a state in them. */
export function build(hello, call, page) {
  const cards = hello.filters.map((filter, n) => new Card(filter, n, hello, call));
  page.table.replaceChildren(...cards.map((c) => c.card));
  const recording = note();
  const record = new Toggle('Record', 'Writes what is received as SigMF into the folder of --keep', (on) => attempt(call, { do: 'record', on }, recording));
  record.button.id = 'record';
  const told = element('span', { class: 'unit' });
  page.recording.replaceChildren(...(hello.recorder ? [element('div', { class: 'row' }, record.button, told, recording)] :
    [element('p', { class: 'quiet' }, 'States and recordings can be kept where the run was started with --keep DIR.')]));
  const fields = (hello.radio?.settings ?? []).map((s) => [s.name, new Field(`radio-${s.name}`, s, (value, at) =>
    attempt(call, { do: 'radio', setting: s.name, value }, at, `set to ${plain(value)} ${s.unit}`))]);
  page.radio.replaceChildren(...fields.map(([, f]) => f.row));
  if (hello.radio?.transmits) page.radio.prepend(element('p', { class: 'quiet' }, 'The frequency is that of the transmitter too: you need the right to transmit there.'));
  return (state) => {
    cards.forEach((card, n) => card.update(state.filters[n], state));
    record.update(state.recording !== null);
    if (state.record_failure) say(told, `ended before it was to: ${state.record_failure}`);
    else say(told, state.recording !== null ? `recording to ${state.recording}` : state.recorded.length ? `recorded: ${state.recorded.join(', ')}` : 'nothing recorded');
    for (const [name, field] of fields) field.update(state.radio.settings[name]);
  };
}
