// One service: its charts, findings and tables.

import { Panel } from "./chart.js";
import { fill, h } from "./element.js";
import { FIGURES } from "./figures.js";
import { findings } from "./findings.js";
import { time } from "./format.js";
import { facts, mixes } from "./mixes.js";
import { tail } from "./series.js";

const WINDOWS = new Map([[300, "the last 5 min"], [900, "the last 15 min"], [3600, "the last hour"]]);

/** Why there are no charts. */
function without(state, selected, name) {
  if (selected?.series !== null) return "Charts begin with the first point, 5 s after the agent started.";
  if (!state.services.some((one) => one.service_name === name)) {
    return "No activity of this service since the agent started.";
  }
  return "This service is not among those with the most CPU time: its history is included in the service “other”.";
}

/** The part of the page on the selected service. */
export class ServiceView {
  constructor(section) {
    const part = (id) => section.querySelector(`#${id}`);
    this.section = section;
    this.heading = part("service-heading");
    this.facts = part("service-facts");
    this.roles = part("roles");
    this.findings = part("findings");
    this.charts = part("charts");
    this.mixes = part("mixes");
    this.panels = FIGURES.map((figure) => new Panel(figure));
    this.note = h("p", { class: "note", hidden: true });
    this.charts.append(...this.panels.map((panel) => panel.element));
    this.charts.before(this.note);
    this.chosen = null;
  }

  /** `held` is its history, `selected` what the agent answered on it. */
  show({ name, state, selected, held, window }) {
    this.section.hidden = false;
    if (this.heading.textContent !== name) {
      this.heading.textContent = name;
      this.chosen = null;
    }
    const details = selected?.details ?? null;
    this.facts.textContent = details ? facts(details.service) : "";
    const role = this.role(state, details, name);
    this.showHistory({ state, selected, held, window, role });
    fill(this.findings, details ? findings(details) : []);
    fill(this.mixes, details ? mixes(details, role) : []);
  }

  showHistory({ state, selected, held, window, role }) {
    const has = held.ends.length > 0;
    this.note.hidden = has;
    this.charts.hidden = !has;
    if (!has) {
      this.note.textContent = without(state, selected, this.heading.textContent);
      return;
    }
    const points = tail(held, window);
    const began = Date.parse(state.started_at) / 1000;
    const times = points.ends.map((end) => began + end);
    const [first, now] = [times[0] - points.lengths[0], times.at(-1)];
    const span = Math.min(window, Math.ceil(held.ends.at(-1)));
    const inWords = span < window ? `the ${time(span)} since the agent started` : WINDOWS.get(window);
    // Of an agent that has just started, what there is fills the chart.
    const from = Math.min(Math.max(now - window, began), now - 60);
    for (const panel of this.panels) {
      const { figure } = panel;
      const series = figure.series(points, role);
      panel.update({ series, times, first, from, now, empty: figure.empty(inWords, role) });
    }
  }

  repaint() {
    this.panels.forEach((panel) => panel.repaint());
  }

  choose(role) {
    this.chosen = role;
  }

  /** The role to show; a choice only where the service has both. */
  role(state, details, name) {
    const now = state.services.find((one) => one.service_name === name)?.roles ?? [];
    const then = details ? [...details.service.connections, ...details.service.handshakes] : [];
    const roles = new Set([...now, ...then].map((one) => one.role));
    this.roles.hidden = roles.size < 2;
    const role = roles.has(this.chosen) ? this.chosen : roles.has("server") || roles.size === 0 ? "server" : "client";
    for (const input of this.roles.querySelectorAll("input")) input.checked = input.value === role;
    return role;
  }
}
