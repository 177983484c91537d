// What is wrong with a service, and what to change.

import { h } from "./element.js";
import { count, percent, time } from "./format.js";

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
  const { remedy } = one;
  const heading = `finding-${one.id}-${one.role}`;
  const seen = `Basis: ${count(one.observed_count)} ${one.observed} in ${time(one.observed_seconds)}.`;
  const saving = savingOf(one.prediction);
  return h(
    "details",
    { class: "finding", "data-severity": one.severity, "data-key": heading, open },
    h(
      "summary",
      {},
      h("span", { class: "badge", "data-severity": one.severity }, one.severity),
      h("h3", { id: heading }, one.title),
      saving?.figure && h("span", { class: "quiet" }, saving.figure),
    ),
    h("p", {}, [...one.evidence, seen].join(" ")),
    saving && h("p", {}, h("strong", {}, saving.figure), " ", saving.rest),
    h("p", {}, `Change (${remedy.server}): ${remedy.change}`),
    remedy.directive && directive(remedy.directive, heading),
    h(
      "dl",
      {},
      h("dt", {}, "Risk"),
      h("dd", {}, one.risk),
      h("dt", {}, "More"),
      h("dd", {}, h("code", {}, one.page), " in tlsprof's documentation (", h("code", {}, one.id), ")"),
    ),
  );
}

function directive(text, heading) {
  return h(
    "div",
    { class: "directive" },
    h("pre", { tabindex: "0", role: "group", "aria-label": "Configuration to write" }, h("code", {}, text)),
    h("button", { type: "button", "data-action": "copy", "aria-describedby": heading }, "Copy"),
  );
}

/** The saving in words, as in the report; null where there is nothing to save. */
function savingOf(prediction) {
  const { latency_seconds: latency, cpu_ratio: share, capacity_ratio: capacity } = prediction;
  if (latency) {
    return { figure: `Would shorten each handshake by about ${time(latency.likely)};`, rest: "saves no CPU." };
  }
  if (!share || !capacity) {
    return prediction.method && { figure: "", rest: `No saving predicted: ${prediction.method}.` };
  }
  const times = `${capacity.likely.toFixed(2)}x capacity`;
  const variants = prediction.variants.map((one) => `${percent(one.cpu_ratio.likely)} at ${one.change}`);
  const extents = variants.length > 1 ? ` Saving: ${variants.join(", ")}.` : "";
  if (prediction.kind === "at_most") {
    const figure = `Would save at most about ${percent(share.likely)} of its CPU`;
    return { figure, rest: `(${times}): ${prediction.caveat}.${extents} ${prediction.method}` };
  }
  const figure = `Would save ${percent(share.likely)} of its CPU`;
  const span = `(${percent(share.low)} to ${percent(share.high)})`;
  return { figure, rest: `${span}: ${times}.${extents} ${prediction.method}` };
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
