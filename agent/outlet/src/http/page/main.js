// The live page: asks the agent, and shows what it answers.

import { address, parse } from "./address.js";
import { agent, caution, host } from "./agent.js";
import { fill } from "./element.js";
import { copy } from "./findings.js";
import { poll } from "./poll.js";
import { empty, merge } from "./series.js";
import { ServiceView } from "./service.js";
import { first, list } from "./services.js";
import { followTheme } from "./theme.js";

const part = (id) => document.getElementById(id);
const view = new ServiceView(part("service"));

/** What is shown. `held` is the history of the selected service. */
const shown = { ...parse(location.hash), state: null, selected: null, held: empty(null) };

function question() {
  const query = new URLSearchParams();
  if (shown.name === null) return query;
  query.set("service", shown.name);
  const { service, run, newest } = shown.held;
  if (service === shown.name && run !== null) {
    query.set("run", run);
    query.set("since", String(newest));
  }
  return query;
}

function answered(state) {
  setStatus("live", "live");
  const known = state.services.some((one) => one.service_name === shown.name);
  if (shown.name === null || (!known && parse(location.hash).name === null)) {
    select(first(state.services));
    if (shown.name !== null) ask();
  }
  shown.state = state;
  shown.selected = state.selected;
  take(state.run, state.selected?.series);
  render();
}

/**
 * Takes new points, unless they are of a service that is no longer shown. What is held of an earlier
 * run of the agent is dropped even if the new one has not seen the service yet.
 */
function take(run, series) {
  if (shown.held.run !== null && shown.held.run !== run) shown.held = empty(shown.name);
  if (series && series.service_name === shown.name) shown.held = merge(shown.held, series);
}

function select(name) {
  shown.name = name;
  shown.selected = null;
  shown.held = empty(name);
}

function setStatus(kind, text) {
  const status = part("status");
  // A status that says the same again would be read out again.
  if (status.textContent !== text) status.textContent = text;
  status.dataset.state = kind;
}

function render() {
  const { state, name, selected, held, window } = shown;
  for (const input of document.querySelectorAll('input[name="window"]')) input.checked = Number(input.value) === window;
  if (!state) return;
  document.title = `tlsprof · ${state.host.hostname}`;
  part("host").textContent = host(state);
  fill(part("service-list"), [caution(state), list(state.services, shown)]);
  fill(part("agent"), agent(state));
  if (name !== null) view.show({ name, state, selected, held, window });
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-action]");
  if (button?.dataset.action === "copy") copy(button);
});

document.addEventListener("change", ({ target }) => {
  if (target.name === "window") {
    shown.window = Number(target.value);
    history.replaceState(null, "", address(shown));
  }
  if (target.name === "role") view.choose(target.value);
  render();
});

addEventListener("hashchange", () => {
  const { name, window } = parse(location.hash);
  shown.window = window;
  if (name !== null && name !== shown.name) {
    select(name);
    ask();
  }
  render();
});

const ask = poll(question, answered, (reason) => setStatus(shown.state ? "lost" : "waiting", reason));
followTheme(part("theme"), () => view.repaint());
