// The demo's moving parts: the race of the two modes, the load, the stream, the upload. No library, no build step.

const byId = (id) => document.getElementById(id);

// --- Classic against worker ------------------------------------------------------------------------------------

const MODES = {
  classic: (path) => `/api.php?path=${path}`,
  worker: (path) => `/worker/?path=${path}`,
};
const AT_ONCE = 4;
// Bins of the histogram: ten for each power of ten, from 0.1 ms to 1 s.
const BINS_A_DECADE = 10;
const FIRST_MS = 0.1;
const BINS = 4 * BINS_A_DECADE;

const binOf = (ms) => Math.max(0, Math.min(BINS - 1, Math.floor(Math.log10(ms / FIRST_MS) * BINS_A_DECADE)));
const startOfBin = (bin) => FIRST_MS * 10 ** (bin / BINS_A_DECADE);
const percentile = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * p) - 1)];

/** What one mode has shown so far. */
class Lane {
  constructor(mode) {
    this.mode = mode;
    this.times = [];
    this.busyMs = 0;
    this.last = null;
    this.failure = null;
    this.element = document.querySelector(`.lane[data-mode=${mode}]`);
  }

  async ask(number) {
    const started = performance.now();
    const answer = await fetch(MODES[this.mode](`/section-${number % 4000}/2026/hello`), { cache: 'no-store' });
    const body = await answer.json();
    const took = performance.now() - started;
    if (!answer.ok || body.mode !== this.mode) throw new Error(`status ${answer.status}`);
    this.times.push(took);
    this.last = body;
  }

  /** Asks `count` times, a few at once. */
  async askMany(count, first) {
    const started = performance.now();
    let next = 0;
    const ask = async () => {
      while (next < count && !this.failure) {
        const number = first + next++;
        await this.ask(number).catch((error) => { this.failure = error; });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, ask));
    this.busyMs += performance.now() - started;
  }

  show() {
    const set = (figure, html) => { this.element.querySelector(`[data-figure=${figure}]`).innerHTML = html; };
    const ms = (value) => `${value < 10 ? value.toFixed(2) : value.toFixed(1)} <small>ms</small>`;
    if (this.failure) {
      ['p50', 'p99', 'rate'].forEach((figure) => set(figure, '—'));
      set('note', 'This endpoint does not answer here: is the page served by another server?');
      return;
    }
    if (!this.times.length) return;
    const sorted = [...this.times].sort((a, b) => a - b);
    set('p50', ms(percentile(sorted, 0.5)));
    set('p99', ms(percentile(sorted, 0.99)));
    set('rate', Math.round(sorted.length / (this.busyMs / 1000)).toLocaleString('en'));
    const boot = `${this.last.boot_ms.toFixed(1)} ms to build the routes`;
    set('note', this.mode === 'classic'
      ? `${boot}, in each of ${sorted.length} requests`
      : `${boot}, once; one thread has answered ${this.last.handled.toLocaleString('en')} requests since`);
  }
}

/** Draws the histogram of the lanes' times: both modes' bars side by side in each bin, on a logarithmic axis. */
function draw(lanes) {
  const chart = byId('race-chart');
  const left = 0, right = chart.clientWidth, top = 14, bottom = 212;
  chart.setAttribute('viewBox', `0 0 ${right} 240`);
  const counts = lanes.map((lane) => {
    const bins = new Array(BINS).fill(0);
    lane.times.forEach((ms) => { bins[binOf(ms)] += 1; });
    return bins;
  });
  // Only the range that has something in it, with a bin's room on both sides and at least one power of ten.
  const used = [...Array(BINS).keys()].filter((bin) => counts.some((bins) => bins[bin] > 0));
  let from = used.length ? Math.max(0, used[0] - 1) : BINS_A_DECADE;
  let to = used.length ? Math.min(BINS, used.at(-1) + 2) : 2 * BINS_A_DECADE;
  if (to - from < BINS_A_DECADE + 2) {
    to = Math.min(BINS, from + BINS_A_DECADE + 2);
    from = Math.max(0, to - BINS_A_DECADE - 2);
  }
  const tallest = Math.max(1, ...counts.flat());
  const width = (right - left) / (to - from);
  const x = (ms) => left + (Math.log10(ms / FIRST_MS) * BINS_A_DECADE - from) * width;
  const parts = [`<line class="grid" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`];

  for (const ms of [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]) {
    if (x(ms) < left - 1 || x(ms) > right + 1) continue;
    const anchor = x(ms) < 20 ? 'start' : x(ms) > right - 20 ? 'end' : 'middle';
    parts.push(`<line class="grid" x1="${x(ms)}" x2="${x(ms)}" y1="${top}" y2="${bottom}"/>`,
      `<text x="${x(ms)}" y="${bottom + 20}" text-anchor="${anchor}">${ms} ms</text>`);
  }
  lanes.forEach((lane, index) => {
    const bar = (width - 4) / lanes.length;
    counts[index].forEach((count, bin) => {
      if (!count || bin < from || bin >= to) return;
      const height = Math.max(2, (count / tallest) * (bottom - top));
      const range = `${startOfBin(bin).toPrecision(2)}–${startOfBin(bin + 1).toPrecision(2)} ms`;
      parts.push(`<rect class="bar-${lane.mode}" x="${(left + (bin - from) * width + 2 + index * bar).toFixed(1)}" ` +
        `y="${(bottom - height).toFixed(1)}" width="${Math.max(1, bar - 1).toFixed(1)}" height="${height.toFixed(1)}" rx="2">` +
        `<title>${lane.mode}: ${count} requests in ${range}</title></rect>`);
    });
    if (lane.times.length > 10) {
      const median = percentile([...lane.times].sort((a, b) => a - b), 0.5);
      parts.push(`<line class="median ${lane.mode}" x1="${x(median)}" x2="${x(median)}" y1="${top - 8}" y2="${bottom}"/>`);
    }
  });
  chart.innerHTML = parts.join('');
}

let lanes = [];

async function race() {
  const button = byId('race-run');
  const total = Number(byId('race-count').value);
  lanes = Object.keys(MODES).map((mode) => new Lane(mode));
  button.disabled = true;
  button.textContent = 'Running…';
  // The first requests compile the scripts and open the connections: they are not counted.
  await Promise.all(lanes.map((lane) => lane.askMany(8, 0)));
  lanes.forEach((lane) => { lane.times = []; lane.busyMs = 0; });
  // The modes take turns, so that whatever else the machine does befalls both.
  const turn = 40;
  for (let asked = 0; asked < total; asked += turn) {
    for (const lane of lanes) {
      if (!lane.failure) await lane.askMany(Math.min(turn, total - asked), asked);
    }
    lanes.forEach((lane) => lane.show());
    draw(lanes);
  }
  lanes.forEach((lane) => lane.show());
  button.disabled = false;
  button.textContent = 'Run again';
}

byId('race-run').addEventListener('click', race);
addEventListener('resize', () => draw(lanes));
draw(lanes);
race();

// --- Threads as needed -----------------------------------------------------------------------------------------

const runs = document.querySelectorAll('#load button');
const PLOT_HEIGHT = 190;

/** Runs an experiment on the server; `seen` is told of each answer, and all of them are the result. */
function experiment(query, seen) {
  runs.forEach((button) => { button.disabled = true; });
  return new Promise((resolve, reject) => {
    const answers = [];
    const source = new EventSource(`/playground.php?${query}`);
    const end = (settle, value) => {
      source.close();
      runs.forEach((button) => { button.disabled = false; });
      settle(value);
    };
    source.onmessage = (message) => {
      answers.push(JSON.parse(message.data));
      seen(answers);
    };
    source.addEventListener('end', () => end(resolve, answers));
    source.onerror = () => end(reject, new Error('The experiment broke off.'));
  });
}

/** A chart's frame: lines across with their labels, and the scales. Milliseconds on both axes. */
function frame(chart, { across, up, left, ticks, lines }) {
  const width = chart.clientWidth, top = 8, bottom = PLOT_HEIGHT - 24;
  const x = (ms) => left + (ms / across) * (width - left - 4);
  const y = (ms) => bottom - up(ms) * (bottom - top);
  const parts = [`<line class="grid" x1="${left}" x2="${width}" y1="${bottom}" y2="${bottom}"/>`];
  ticks.forEach((ms, index) => {
    const anchor = index === 0 ? 'start' : index === ticks.length - 1 ? 'end' : 'middle';
    parts.push(`<text x="${x(ms)}" y="${bottom + 18}" text-anchor="${anchor}">${ms < 1000 ? `${ms} ms` : `${ms / 1000} s`}</text>`);
  });
  lines.forEach((ms) => parts.push(
    `<line class="grid" x1="${left}" x2="${width}" y1="${y(ms)}" y2="${y(ms)}"/>`,
    `<text x="0" y="${y(ms) + 4}">${ms < 1000 ? `${ms} ms` : `${ms / 1000} s`}</text>`));
  chart.setAttribute('viewBox', `0 0 ${width} ${PLOT_HEIGHT}`);
  return { x, y, parts, top, bottom };
}

const BURST = 50;
let burst = [];

function drawBurst() {
  const last = Math.max(400, ...burst.map((answer) => answer.at + answer.took));
  const across = Math.ceil(last / 200) * 200;
  const step = Math.ceil(across / 800) * 200;
  const ticks = Array.from({ length: Math.floor(across / step) + 1 }, (_, index) => index * step);
  const { x, parts, top, bottom } = frame(byId('burst-chart'), { across, up: () => 0, left: 0, ticks, lines: [] });
  const height = (bottom - top) / BURST;
  [...burst].sort((a, b) => (a.at + a.took) - (b.at + b.took)).forEach(({ at, took }, index) => parts.push(
    `<rect class="request" x="${x(at).toFixed(1)}" y="${(top + index * height).toFixed(1)}" ` +
    `width="${Math.max(1, x(at + took) - x(at)).toFixed(1)}" height="${Math.max(1, height - 0.8).toFixed(1)}">` +
    `<title>${took.toFixed(0)} ms</title></rect>`));
  byId('burst-chart').innerHTML = parts.join('');
}

async function runBurst() {
  const result = byId('burst-result');
  burst = [];
  drawBurst();
  result.textContent = 'Sent…';
  try {
    const answers = await experiment(`run=burst&count=${BURST}`, (some) => { burst = some; drawBurst(); });
    const failed = answers.filter((answer) => answer.status !== 200).length;
    const all = Math.max(...answers.map((answer) => answer.at + answer.took));
    const threads = new Set(answers.map((answer) => answer.thread)).size;
    result.textContent = `${answers.length - failed} of ${answers.length} answered, all within ${all.toFixed(0)} ms, on ${threads} threads.`;
  } catch (error) {
    result.textContent = error.message;
  }
}

// When the first of the hanging requests is sent: see playground.php.
const HANGING_FROM = 1000;
const HANG_LANES = { hang: 'with lanes', 'hang-without-lanes': 'without lanes' };
const hung = {};

function drawHang() {
  // Logarithmic: from half a millisecond to 4 s.
  const up = (ms) => Math.min(1, Math.log10(Math.max(0.5, ms) / 0.5) / Math.log10(8000));
  const settings = { across: 4000, up, left: 52, ticks: [0, 1000, 2000, 3000, 4000], lines: [1, 10, 100, 1000] };
  const { x, y, parts } = frame(byId('hang-chart'), settings);
  Object.keys(HANG_LANES).forEach((run) => (hung[run] ?? []).forEach(({ at, took }) => parts.push(
    `<circle class="${run}" cx="${x(at).toFixed(1)}" cy="${y(took).toFixed(1)}" r="2.5"><title>${HANG_LANES[run]}: ${took.toFixed(1)} ms</title></circle>`)));
  byId('hang-chart').innerHTML = parts.join('');
}

function sayHang() {
  const time = (ms) => (ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`);
  byId('hang-result').replaceChildren(...Object.keys(HANG_LANES).filter((run) => hung[run]?.length).map((run) => {
    const times = hung[run].filter((answer) => answer.at > HANGING_FROM).map((answer) => answer.took).sort((a, b) => a - b);
    const line = document.createElement('span');
    line.className = `key ${run}`;
    line.textContent = `${HANG_LANES[run]}: half in ${time(percentile(times, 0.5))}, ` +
      `90 % in ${time(percentile(times, 0.9))}, all in ${time(times.at(-1))}`;
    return line;
  }));
}

async function runHang(run) {
  hung[run] = [];
  byId('hang-result').textContent = 'Sent…';
  drawHang();
  const fast = (answers) => answers.filter((answer) => answer.kind === 'fast');
  try {
    await experiment(`run=${run}`, (answers) => { hung[run] = fast(answers); drawHang(); });
    sayHang();
  } catch (error) {
    byId('hang-result').textContent = error.message;
  }
}

byId('burst-run').addEventListener('click', runBurst);
document.querySelectorAll('[data-run]').forEach((button) => button.addEventListener('click', () => runHang(button.dataset.run)));
addEventListener('resize', () => { drawBurst(); drawHang(); });
drawBurst();
drawHang();

// --- Streaming -------------------------------------------------------------------------------------------------

const dots = byId('stream-dots');
const EVENTS = 40;
dots.innerHTML = '<li></li>'.repeat(EVENTS);

function stream() {
  const button = byId('stream-run');
  const result = byId('stream-result');
  const gaps = [];
  let previous = null;
  button.disabled = true;
  [...dots.children].forEach((dot) => dot.classList.remove('here'));
  result.textContent = 'Waiting for the first event…';
  const source = new EventSource('/events.php');
  const finish = (text) => {
    source.close();
    result.textContent = text;
    button.disabled = false;
    button.textContent = 'Stream again';
  };
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    const now = performance.now();
    if (previous !== null) gaps.push(now - previous);
    previous = now;
    dots.children[event.number - 1]?.classList.add('here');
    result.textContent = `Event ${event.number} of ${event.of}` +
      (gaps.length ? `, ${gaps.at(-1).toFixed(0)} ms after the one before.` : '.');
  };
  source.addEventListener('end', () => {
    const sorted = gaps.sort((a, b) => a - b);
    finish(sorted.length
      ? `All ${EVENTS} arrived, ${percentile(sorted, 0.5).toFixed(0)} ms apart (median), ${sorted.at(-1).toFixed(0)} ms at most.`
      : 'The stream ended with nothing in it.');
  });
  source.onerror = () => finish('The stream broke off.');
}

byId('stream-run').addEventListener('click', stream);

// --- Uploads ---------------------------------------------------------------------------------------------------

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e6 ? 2 : 1)} MB`;

/** The SHA-256 of a file in hexadecimal, or null where the browser does not offer it. */
async function digest(file) {
  if (!globalThis.crypto?.subtle) return null;
  const hash = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function say(text, mood = '') {
  const result = byId('upload-result');
  result.textContent = text;
  result.className = `result ${mood}`;
}

async function upload(file) {
  const form = new FormData();
  form.append('file', file);
  say(`Sending ${file.name}…`);
  const started = performance.now();
  try {
    const [answer, ours] = await Promise.all([fetch('/upload.php', { method: 'POST', body: form }), digest(file)]);
    const took = performance.now() - started;
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error);
    const same = ours === null || ours === body.sha256;
    say(same
      ? `${body.name}, ${megabytes(body.size)}: whole, in ${took.toFixed(0)} ms. SHA-256 ${body.sha256.slice(0, 16)}…`
      : `${body.name} arrived changed: ${body.sha256}`, same ? 'good' : 'bad');
  } catch (error) {
    say(`${file.name} did not arrive: ${error.message}.`, 'bad');
  }
}

/** `size` bytes that no compression would shrink. */
function noise(size) {
  const bytes = new Uint8Array(size);
  for (let i = 0; i < size; i += 65536) crypto.getRandomValues(bytes.subarray(i, Math.min(size, i + 65536)));
  return new File([bytes], 'noise.bin');
}

const drop = byId('upload-drop');
byId('upload-random').addEventListener('click', () => upload(noise(8e6)));
byId('upload-file').addEventListener('change', (event) => {
  if (event.target.files[0]) upload(event.target.files[0]);
  event.target.value = '';
});
drop.addEventListener('dragover', (event) => { event.preventDefault(); drop.classList.add('over'); });
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', (event) => {
  event.preventDefault();
  drop.classList.remove('over');
  if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
});
