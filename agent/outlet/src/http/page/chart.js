// One chart with its table, which says the same to those who do not see the chart.

import { fill, h, table } from "./element.js";

const { uPlot } = globalThis;

const clock = (parts) => new Intl.DateTimeFormat(undefined, { hour: "2-digit", hourCycle: "h23", ...parts });
const minutes = clock({ minute: "2-digit" });
const seconds = clock({ minute: "2-digit", second: "2-digit" });

/** A time of day, of seconds since 1970; without seconds where there are none. */
const timeOfDay = (at) => (at % 60 === 0 ? minutes : seconds).format(new Date(at * 1000));

/** A value on an axis: `50/s`, where a table says `50.0/s`. */
const plain = (text) => text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** A colour of the theme as the canvas needs it. */
function colour(name) {
  const probe = document.body.appendChild(h("span", { hidden: true }));
  probe.style.color = `var(--${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A panel for a figure: see figures.js. */
export class Panel {
  constructor(figure) {
    this.figure = figure;
    this.target = h("div", { class: "chart", role: "img" });
    this.empty = h("p", { class: "empty", hidden: true });
    this.legend = h("div", {});
    const body = h("div", { class: figure.wide && "chart-with-table" }, this.target, this.legend);
    const id = `panel-${figure.id}`;
    this.element = h(
      "section",
      { class: figure.wide ? "panel wide" : "panel", "aria-labelledby": id },
      h("h3", { id }, figure.title),
      h("p", { class: "note" }, figure.note),
      this.empty,
      body,
    );
    this.body = body;
    this.plot = null;
    this.kind = "";
    new ResizeObserver(() => this.fit()).observe(this.target);
  }

  /** Shows series over points that end at `times`, the first of which began at `first`; all times
   * in seconds since 1970. */
  update({ series, times, first, from, now, empty }) {
    const shown = series.filter((one) => one.always || one.values.some((value) => value));
    const nothing = !shown.some((one) => one.values.some((value) => value));
    this.empty.hidden = !nothing;
    this.body.hidden = nothing;
    if (nothing) {
      this.empty.textContent = empty;
      this.drop();
      return;
    }
    // A point is drawn back to the one before it: the first gets one, too.
    this.series = shown.map((one) => ({ ...one, values: [one.values[0], ...one.values] }));
    this.times = [first, ...times];
    this.range = [from, now];
    this.target.setAttribute("aria-label", `Chart of ${this.figure.title}; its figures are in the table`);
    this.draw();
    this.tell(null);
  }

  /** Takes the colours of another theme. */
  repaint() {
    this.drop();
    if (this.series && !this.body.hidden) this.draw();
  }

  drop() {
    this.plot?.destroy();
    this.plot = null;
  }

  draw() {
    const kind = this.series.map((one) => one.label).join("\n");
    const data = [this.times, ...this.layers().map((one) => one.values)];
    if (this.plot && this.kind === kind) {
      this.plot.setData(data);
      return;
    }
    this.drop();
    this.kind = kind;
    this.plot = new uPlot(this.options(), data, this.target);
    // What is drawn is in the table; its own legend is not shown.
    this.plot.root.setAttribute("aria-hidden", "true");
  }

  /** The series as they are drawn: stacked ones on top of each other, the highest first. */
  layers() {
    const lines = this.series.filter((one) => one.line || !this.figure.stacked);
    if (!this.figure.stacked) return lines;
    const parts = this.series.filter((one) => !one.line);
    let below = this.times.map(() => 0);
    const stacked = parts.map((one) => {
      below = below.map((value, at) => value + one.values[at]);
      return { ...one, values: below, filled: true };
    });
    return [...stacked.reverse(), ...lines];
  }

  options() {
    const axis = { stroke: colour("quiet"), font: "12px system-ui, sans-serif", ticks: { show: false } };
    const grid = { stroke: colour("grid"), width: 1 };
    const { format } = this.figure;
    return {
      ...this.size(),
      // Room for half of the last label of the axis.
      padding: [8, 32, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !this.figure.stacked } },
      scales: {
        x: { range: () => this.range },
        y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.05 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 70, size: 30, values: (_plot, splits) => splits.map(timeOfDay) },
        {
          ...axis,
          grid,
          size: 76,
          space: 36,
          incrs: this.figure.binary ? POWERS_OF_TWO : undefined,
          values: (_plot, splits) => splits.map((one) => plain(format(one))),
        },
      ],
      series: [{}, ...this.layers().map((one) => this.drawn(one))],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx ?? null)] },
    };
  }

  drawn(one) {
    const stroke = colour(one.colour);
    return {
      label: one.label,
      stroke,
      fill: one.filled ? stroke : undefined,
      width: one.filled ? 0 : 1.75,
      dash: one.line ? [4, 3] : undefined,
      spanGaps: false,
      points: { show: false },
      // A point is the mean of the time before it.
      paths: uPlot.paths.stepped({ align: -1 }),
    };
  }

  size() {
    return { width: Math.max(220, this.target.clientWidth), height: this.figure.wide ? 240 : 180 };
  }

  fit() {
    if (this.plot && this.target.clientWidth > 0) this.plot.setSize(this.size());
  }

  /** Fills the table, with the values at a point, or the newest ones. */
  tell(at) {
    const { format } = this.figure;
    const show = (value) => (value === null || value === undefined ? "–" : format(value));
    const rows = this.series.map((one) => [
      h("span", {}, h("span", { class: "swatch", colour: one.colour }), one.label),
      show(one.values[at ?? one.values.length - 1]),
      show(one.mean),
      ...(one.share === undefined ? [] : [one.share]),
    ]);
    const when = at === null ? "now" : seconds.format(new Date(this.times[at] * 1000));
    const headings = ["", when, "mean", ...(this.series.some((one) => one.share !== undefined) ? ["share"] : [])];
    fill(this.legend, table({ caption: this.figure.title, hidden: true, headings: headingsOf(headings), rows }));
  }
}

/** The first heading is for screen readers alone. */
const headingsOf = ([, ...rest]) => [h("span", { class: "visually-hidden" }, "series"), ...rest];
