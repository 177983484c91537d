// What is wrong with a service, and what to change.

import { h } from "./element.js";
import { count, percent, time } from "./format.js";

/** Sentences of a change that are always shown: the second is a condition, or a step that must follow. */
const CHANGE = 2;

/** The findings on a service, gravest first. */
export function findings(details) {
  const all = details.findings;
  const savings = all.filter((one) => one.prediction.cpu_ratio).length;
  return [
    ...all.map((one, at) => finding(one, at === 0)),
    savings > 1 &&
      h("p", { class: "note" }, "Savings of several findings overlap and do not add up."),
  ];
}

/** The gravest is open; a person may open and close them all. */
function finding(one, open) {
  const { remedy, prediction } = one;
  const heading = `finding-${one.id}-${one.role}`;
  const [seen, ...more] = sentences(one.evidence.join(" "));
  const changes = sentences(remedy.change);
  const change = changes.slice(0, CHANGE).join(" ");
  const [risk, ...otherRisks] = sentences(one.risk);
  const basis = `Basis: ${count(one.observed_count)} ${one.observed} in ${time(one.observed_seconds)}.`;
  const details = [
    [...more, basis].join(" "),
    named("Saving", variants(prediction)),
    prediction.cpu_ratio && prediction.method,
    named("Change", changes.slice(CHANGE).join(" ")),
    named("Risk", otherRisks.join(" ")),
  ];
  return h(
    "details",
    { class: "finding", "data-severity": one.severity, "data-key": heading, open },
    h(
      "summary",
      {},
      h("span", { class: "badge", "data-severity": one.severity }, one.severity),
      h("h3", { id: heading }, one.title),
      prediction.cpu_ratio && h("span", { class: "quiet" }, `saves ${share(prediction)} of its CPU`),
    ),
    h("p", {}, seen),
    h("p", {}, saving(prediction)),
    h("p", {}, `Change (${remedy.server}): ${change}`),
    remedy.directive && directive(remedy.directive, heading),
    h("p", { class: "quiet" }, `Risk: ${risk}`),
    h(
      "details",
      {},
      h("summary", {}, "Details and estimate"),
      details.filter(Boolean).map((text) => h("p", {}, text)),
    ),
    h("p", {}, h("a", { href: `/findings/${one.id}` }, `About ${one.id}`)),
  );
}

/** The first is what a reader needs; as in the report (agent/outlet/src/report/findings.rs). */
export const sentences = (text) => text.split(/(?<=\.) /);

const named = (name, text) => text && `${name}: ${text}`;

function directive(text, heading) {
  return h(
    "div",
    { class: "directive" },
    h("pre", { tabindex: "0", role: "group", "aria-label": "Configuration to write" }, h("code", {}, text)),
    h("button", { type: "button", "data-action": "copy", "aria-describedby": heading }, "Copy"),
  );
}

/** The saving in a line, as in the report; empty where there is nothing to save. */
export function saving(prediction) {
  const { latency_seconds: latency, cpu_ratio: share, capacity_ratio: capacity } = prediction;
  if (latency) return `Would shorten each handshake by about ${time(latency.likely)}; saves no CPU.`;
  if (!share || !capacity) return prediction.method && `No saving predicted: ${prediction.method}.`;
  if (prediction.kind === "at_most") {
    const most = `${Math.round(100 * share.likely)}% of its CPU (up to ${bound(capacity.likely)}x capacity)`;
    return `Would save at most about ${most}: ${prediction.caveat}.`;
  }
  const span = `${percent(share.low)} to ${percent(share.high)}`;
  return `Would save ${percent(share.likely)} of its CPU (${span}): ${capacity.likely.toFixed(2)}x capacity.`;
}

const share = ({ kind, cpu_ratio: ratio }) =>
  kind === "at_most" ? `at most ${Math.round(100 * ratio.likely)}%` : percent(ratio.likely);

/** An upper bound with the digits that it deserves: one from ten on, two below; rounded down. */
function bound(capacity) {
  if (capacity < 10) return (Math.floor(10 * capacity) / 10).toFixed(1);
  const unit = 10 ** Math.floor(Math.log10(capacity));
  return (Math.floor(capacity / unit) * unit).toFixed(0);
}

/** The saving of other extents of the change. */
function variants(prediction) {
  if (prediction.variants.length < 2) return "";
  return `${prediction.variants.map((one) => `${percent(one.cpu_ratio.likely)} at ${one.change}`).join(", ")}.`;
}

/** Copies the directive beside a button; says whether it worked. */
export async function copy(button) {
  const text = button.parentElement.querySelector("pre").textContent;
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers allow it only over TLS or on localhost.
    getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
    said = "Selected: press Ctrl+C to copy";
  }
  button.textContent = said;
  setTimeout(() => (button.textContent = "Copy"), 3000);
}
