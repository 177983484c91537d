// The list of services.

import { h } from "./element.js";
import { cores, count, counted, percent, rate, time } from "./format.js";
import { ACTIVITY_COLOURS } from "./figures.js";

/** Rows before one asks for all. */
const ROWS = 10;

/** The address of a service on this page. */
export const address = (name) => `#service=${encodeURIComponent(name)}`;

/** What is shown as the service's main role. */
const main = (service) => service.roles[0];

/** Services with something to see: the others come last. */
const matters = (service) => service.roles.length > 0 || service.findings > 0 || service.ports.length > 0;

/** The service to show where nobody chose: the first that serves TLS, or does it, or anything. */
export function first(services) {
  const has = (wanted) => services.find(wanted)?.service_name;
  const handshakes = (one) => main(one)?.handshakes_per_second > 0;
  return (
    has((one) => handshakes(one) && main(one).role === "server") ??
    has(handshakes) ??
    has(matters) ??
    has(() => true) ??
    null
  );
}

/** The list; `all` also shows the services that do nothing of interest. */
export function list(services, selected, all) {
  if (services.length === 0) {
    return h(
      "p",
      { class: "note" },
      "No service has used CPU time or TCP connections since the agent started. ",
      "If you expect one, run `tlsprof list` to see what tlsprof finds on this host.",
    );
  }
  const ordered = [...services.filter(matters), ...services.filter((one) => !matters(one))];
  const interesting = ordered.filter(matters).length || ordered.length;
  const shown = ordered.filter(
    (one, at) => all || at < Math.min(ROWS, interesting) || one.service_name === selected,
  );
  const hidden = ordered.length - shown.length;
  return [
    h(
      "table",
      {},
      h("caption", { class: "visually-hidden" }, "Services, most CPU time first"),
      headings(),
      h("tbody", {}, shown.map((one) => row(one, one.service_name === selected))),
    ),
    (hidden > 0 || all) &&
      h(
        "div",
        { class: "more" },
        h("button", { type: "button", "data-action": "all-services", "aria-expanded": String(all) },
          all ? "Show fewer services" : `Show ${counted(hidden, "more service", "more services")}`),
      ),
  ];
}

function headings() {
  const heading = (text, attributes) => h("th", { scope: "col", ...attributes }, text);
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      heading("Service"),
      heading("CPUs", { class: "number" }),
      heading("by activity", { class: "optional" }),
      heading("TLS", { class: "number" }),
      heading("handshakes", { class: "number" }),
      heading("CPU/handshake", { class: "number optional" }),
      heading("TIME_WAIT", { class: "number optional" }),
      heading("Findings", { class: "number" }),
    ),
  );
}

function row(service, selected) {
  const role = main(service);
  const cell = (text, more = "") => h("td", { class: `number ${more}`.trim() }, text);
  const findings = service.findings > 0
    ? h("span", { class: "badge", "data-severity": service.severity }, count(service.findings))
    : "–";
  return h(
    "tr",
    { "data-key": service.service_name, "data-selected": selected },
    h(
      "th",
      { scope: "row" },
      h("a", { href: address(service.service_name), "aria-current": selected && "true" }, service.service_name),
      service.ports.length > 0 && h("span", { class: "quiet optional" }, ` ${ports(service.ports)}`),
    ),
    cell(cores(service.cpu_cores)),
    h("td", { class: "bar-cell optional" }, activityBar(service)),
    cell(percent(service.tls_ratio)),
    cell(role ? rate(role.handshakes_per_second) : "–"),
    cell(role?.each_cpu_seconds ? time(role.each_cpu_seconds) : "–", "optional"),
    cell(role ? count(role.time_wait_standing) : "–", "optional"),
    h("td", { class: "number" }, findings),
  );
}

/** The first ports: a service may listen on many. */
export function ports(all) {
  const shown = all.slice(0, 4).map((port) => `:${port}`).join(" ");
  return all.length > 4 ? `${shown} and ${all.length - 4} more` : shown;
}

function activityBar(service) {
  const of = (one) => one.user_cores + one.system_cores;
  const sum = service.activities.reduce((all, one) => all + of(one), 0);
  if (sum === 0) return h("span", { class: "quiet" }, "–");
  const parts = service.activities.filter((one) => of(one) > 0);
  const share = (one) => (of(one) / sum).toFixed(4);
  const words = parts.map((one) => `${one.activity.replaceAll("_", " ")} ${percent(of(one) / sum)}`).join(", ");
  return [
    h("span", { class: "stack", "aria-hidden": "true", title: words },
      parts.map((one) => h("span", { share: share(one), colour: ACTIVITY_COLOURS.get(one.activity) }))),
    h("span", { class: "visually-hidden" }, words),
  ];
}
