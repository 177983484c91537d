// What is wrong with a service, and what to change.

import { h } from "./element.js";

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
  const { remedy, lines } = one;
  const heading = `finding-${one.id}-${one.role}`;
  return h(
    "details",
    { class: "finding", "data-severity": one.severity, "data-key": heading, open },
    h(
      "summary",
      {},
      h("span", { class: "badge", "data-severity": one.severity }, one.severity),
      h("h3", { id: heading }, one.title),
      lines.gain && h("span", { class: "quiet" }, `saves ${lines.gain}`),
    ),
    h("p", {}, lines.seen),
    lines.saving && h("p", {}, lines.saving),
    h("p", {}, `Change (${remedy.server}): ${lines.change}`),
    remedy.directive && directive(remedy.directive, heading),
    h("p", { class: "quiet" }, `Risk: ${lines.risk}`),
    h(
      "details",
      {},
      h("summary", {}, "Details and estimate"),
      lines.details.map((text) => h("p", {}, text)),
    ),
    h("p", {}, h("a", { href: `/findings/${one.id}` }, `About ${one.id}`)),
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
