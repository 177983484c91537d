// What the agent says of itself: its host, its cost and its losses.

import { h } from "./element.js";
import { bytes, count, counted, percent, time, words } from "./format.js";

/** Host and program, in a line. */
export function host(state) {
  const { host: machine, tlsprof_version: version, elapsed_seconds: elapsed } = state;
  return [
    machine.hostname,
    `Linux ${machine.kernel}`,
    counted(machine.cpus, "CPU", "CPUs"),
    `tlsprof ${version}`,
    `profiling for ${time(Math.round(elapsed))}`,
  ].join(" · ");
}

/** Cost and losses. */
export function agent(state) {
  return [
    losses(state.losses),
    harmless(state.harmless_losses),
    h("p", {}, cost(state.agent)),
    state.agent.reduced && h("p", {}, state.agent.reduced.text),
    h("p", {}, source(state)),
  ];
}

/** What must be known before figures are read; null where nothing. */
export function caution(state) {
  const { reduced } = state.agent;
  return reduced?.estimates ? h("p", { class: "note" }, `Figures of handshakes are estimates. ${reduced.text}`) : null;
}

const sum = (losses) => losses.reduce((lost, one) => lost + one.count, 0);
const reasonsOf = (losses) => losses.map((one) => `${words(one.reason)} ${count(one.count)}`).join(", ");

/** What makes figures wrong: the only losses that are an alarm. */
function losses(all) {
  if (all.length === 0) return h("p", {}, "No data was lost since the agent started.");
  const text = `Lost: ${counted(sum(all), "record or call", "records or calls")} since the agent started`;
  return h("p", {}, h("span", { class: "lost" }, text), ` (${reasonsOf(all)}): the figures above are too low.`);
}

function harmless(all) {
  if (all.length === 0) return null;
  return h("p", {}, `Without effect on counts: ${reasonsOf(all)}.`);
}

function cost(of) {
  const own = of.cpu_cores === null ? "" : `${percent(of.cpu_cores)} of one CPU and `;
  const text = `The agent uses ${own}${bytes(of.memory_bytes)} of memory.`;
  if (of.profiled_ratio === null) return text;
  return `${text} Overhead for the services: at most ${percent(of.profiled_ratio)} of their CPU time.`;
}

function source(state) {
  const { period_seconds: period, unavailable } = state.sampling;
  const list = state.interval_seconds > 0
    ? `Figures in the list of services are averages over ${time(state.interval_seconds)}. `
    : "";
  if (unavailable) return `${list}No CPU time by activity: ${unavailable}.`;
  if (!period) return list;
  return `${list}CPU by activity comes from ${count(1 / period)} samples per second on each CPU.`;
}
