// Plots over time, as SVG. A point is a moment with a value for each series; a missing value is a gap.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 144;
const TOP = 8;
const BOTTOM = 126;
const LEFT = 48;
const LONGEST_SECONDS = 300;
const SHORTEST_SECONDS = 60;

export class Plot {
  // series: [{ name, ink }], bottom to top where they are stacked.
  constructor(figure, { series, format, stacked = false }) {
    Object.assign(this, { figure, series, format, stacked, points: [], pointer: null });
    this.legend = figure.appendChild(element("p", "legend"));
    this.svg = figure.appendChild(document.createElementNS(SVG, "svg"));
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    this.values = series.map(({ name, ink }) => {
      const entry = this.legend.appendChild(element("span", `ink-${ink}`));
      entry.append(`${name} `);
      return entry.appendChild(document.createElement("b"));
    });
    this.svg.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  // time: seconds. values: one for each series, null for none.
  push(time, values) {
    this.points.push({ time, values });
    while (time - this.points[0].time > LONGEST_SECONDS) this.points.shift();
    this.draw();
  }

  clear() {
    this.points = [];
    this.draw();
  }

  point(x) {
    this.pointer = x;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth || 320;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const last = this.points.at(-1);
    const end = last ? last.time : 0;
    const span = last ? Math.max(SHORTEST_SECONDS, end - this.points[0].time) : SHORTEST_SECONDS;
    const top = ceiling(Math.max(...this.points.map((point) => this.highest(point)), 0));
    const x = (time) => LEFT + (1 - (end - time) / span) * (width - LEFT - 4);
    const y = (value) => BOTTOM - (value / top) * (BOTTOM - TOP);
    const shapes = [...this.grid(top, span, width, y), ...(this.stacked ? this.areas(x, y) : this.lines(x, y))];
    const shown = this.chosen(x);
    if (shown && this.pointer !== null) {
      shapes.push(shape("line", { class: "cursor", x1: x(shown.time), x2: x(shown.time), y1: TOP, y2: BOTTOM }));
    }
    this.svg.replaceChildren(...shapes);
    this.showValues((shown ?? last)?.values ?? []);
  }

  // Of a stack, what is not there needs no room.
  showValues(values) {
    this.values.forEach((node, index) => {
      node.textContent = this.text(values[index]);
      node.parentNode.hidden = this.stacked && values[index] === 0;
    });
  }

  text(value) {
    return value === null || value === undefined ? "–" : this.format(value);
  }

  highest(point) {
    const values = point.values.map((value) => value ?? 0);
    return this.stacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
  }

  chosen(x) {
    if (this.pointer === null) return null;
    const distance = (point) => Math.abs(x(point.time) - this.pointer);
    return this.points.reduce((best, point) => (!best || distance(point) < distance(best) ? point : best), null);
  }

  grid(top, span, width, y) {
    const rules = [0, top / 2, top].flatMap((value) => [
      shape("line", { class: "grid", x1: LEFT, x2: width, y1: y(value), y2: y(value) }),
      label(LEFT - 6, y(value) + 3, "end", this.format(value)),
    ]);
    return [...rules, label(LEFT, HEIGHT - 4, "start", ago(span)), label(width - 4, HEIGHT - 4, "end", "now")];
  }

  lines(x, y) {
    return this.series.map(({ ink }, index) => {
      let pen = "M";
      const path = this.points.map(({ time, values }) => {
        const value = values[index];
        if (value === null || value === undefined) { pen = "M"; return ""; }
        const step = `${pen}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
        return step;
      });
      return shape("path", { class: `line ink-${ink}`, d: path.join("") });
    });
  }

  areas(x, y) {
    const runs = this.runs();
    return this.series.map(({ ink }, index) => {
      const d = runs.map((run) => {
        const edge = (through) => run.map(({ time, values }) => {
          const sum = values.slice(0, through).reduce((total, value) => total + value, 0);
          return `${x(time).toFixed(1)} ${y(sum).toFixed(1)}`;
        });
        return `M${[...edge(index + 1), ...edge(index).reverse()].join("L")}Z`;
      });
      return shape("path", { class: `area ink-${ink}`, d: d.join("") });
    });
  }

  // Stretches of points without a gap.
  runs() {
    const runs = [[]];
    for (const point of this.points) {
      if (point.values.includes(null)) runs.push([]);
      else runs.at(-1).push(point);
    }
    return runs.filter((run) => run.length > 0);
  }
}

// The next of 1, 2, 5, 10, 20, …
function ceiling(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function ago(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s ago` : `${Math.round(seconds / 60)} min ago`;
}

function label(x, y, anchor, text) {
  const node = shape("text", { x, y, "text-anchor": anchor });
  node.textContent = text;
  return node;
}

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function element(name, className) {
  const node = document.createElement(name);
  node.className = className;
  return node;
}
