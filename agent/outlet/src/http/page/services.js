// The list of services.

import { address } from "./address.js";
import { h } from "./element.js";
import { cores, count, counted, percent, rate, time } from "./format.js";
import { ACTIVITY_COLOURS } from "./figures.js";

/** Rows before one asks for more. */
const ROWS = 10;

/** What is shown as the service's main role. */
const main = (service) => service.roles[0];

/** CPUs in TLS: from samples, or where there are none, in handshakes alone. */
export const tlsCores = (service) =>
  service.tls_ratio === null
    ? service.roles.reduce((all, one) => all + one.handshake_cores, 0)
    : service.tls_ratio * service.cpu_cores;

/** A figure that comes from the CPU time of handshakes, which may be a lower bound. */
const atLeast = (role, figure) => (role.handshake_cpu_is_lower_bound ? `≥${figure}` : figure);

const isClient = (service) =>
  service.ports.length === 0 && service.tls_roles.includes("client") && !service.tls_roles.includes("server");

const hasTls = (service) => service.tls_roles.length > 0 || service.findings > 0 || tlsCores(service) > 0;

/**
 * Services by what a person looks for, each group by the CPU time that TLS takes: servers with TLS;
 * clients on this host, such as load generators; services without TLS.
 */
export function groups(services) {
  const sorted = [...services].sort(
    (one, other) => tlsCores(other) - tlsCores(one) || other.cpu_cores - one.cpu_cores,
  );
  const servers = sorted.filter((one) => hasTls(one) && !isClient(one));
  const clients = sorted.filter(isClient);
  const others = sorted.filter((one) => !hasTls(one) && !isClient(one));
  return { servers, clients, others };
}

/** The service to show where nobody chose. */
export function first(services) {
  const { servers, clients, others } = groups(services);
  return [...servers, ...clients, ...others][0]?.service_name ?? null;
}

/** The list, in groups of which all but the first are folded. */
export function list(services, shown) {
  if (services.length === 0) {
    return h(
      "p",
      { class: "note" },
      "No service has used CPU time or TCP connections since the agent started. ",
      "If you expect one, run `tlsprof list` to see what tlsprof finds on this host.",
    );
  }
  const { servers, clients, others } = groups(services);
  const fold = (key, title, rows) => folded({ key, title, rows, shown });
  return [
    servers.length > 0
      ? table("Services with TLS, most TLS CPU time first", servers.slice(0, ROWS), shown)
      : h("p", { class: "note" }, "No service has done a TLS handshake in the last minutes."),
    fold("more", (number) => `${counted(number, "more service", "more services")} with TLS`, servers.slice(ROWS)),
    fold("clients", (number) => `${counted(number, "client", "clients")} on this host`, clients),
    fold("others", (number) => `${counted(number, "service", "services")} without TLS`, others),
  ];
}

/** Open at first if the service that is shown is in it. */
function folded({ key, title, rows, shown }) {
  if (rows.length === 0) return null;
  const open = rows.some((one) => one.service_name === shown.name);
  return h(
    "details",
    { class: "group", "data-key": key, open },
    h("summary", {}, title(rows.length)),
    table(title(rows.length), rows, shown),
  );
}

function table(caption, rows, shown) {
  return h(
    "table",
    {},
    h("caption", { class: "visually-hidden" }, caption),
    headings(),
    h("tbody", {}, rows.map((one) => row(one, shown))),
  );
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
      heading("CPUs", { class: "number", title: "CPU seconds per second: 1 is one CPU, fully used" }),
      heading("by activity", { class: "optional", title: "What the CPU time was spent on" }),
      heading("TLS", { class: "number", title: "Share of the service's CPU time: handshakes and encryption" }),
      heading("handshakes", { class: "number", title: "TLS handshakes per second, however they ended" }),
      heading("CPU/handshake", { class: "number optional", title: "Mean CPU time of a completed handshake" }),
      heading("TIME_WAIT", { class: "number optional", title: "Sockets in TIME_WAIT that this side closed" }),
      heading("Findings", { class: "number" }),
    ),
  );
}

function row(service, shown) {
  const role = main(service);
  const selected = service.service_name === shown.name;
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
      h("a", { href: address({ ...shown, name: service.service_name }), "aria-current": selected && "true" }, service.service_name),
      service.ports.length > 0 && h("span", { class: "quiet optional" }, ` ${ports(service.ports)}`),
    ),
    cell(cores(service.cpu_cores)),
    h("td", { class: "bar-cell optional" }, activityBar(service)),
    cell(percent(service.tls_ratio)),
    cell(role ? rate(role.handshakes_per_second) : "–"),
    cell(role?.each_cpu_seconds ? atLeast(role, time(role.each_cpu_seconds)) : "–", "optional"),
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
