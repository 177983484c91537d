// What was negotiated, and where handshakes and connections spend their time: tables over the
// last minutes.

import { barCell, h, table } from "./element.js";
import { bytes, count, counted, percent, time, words } from "./format.js";

/** All tables on a service in one role. */
export function mixes(details, role) {
  const { service } = details;
  const of = (rows) => rows.filter((one) => one.role === role);
  const groups = of(service.handshakes);
  const tables = [
    ...negotiated(groups),
    costs(of(service.handshake_costs)),
    steps(of(service.steps)),
    sampledSteps(service, role),
    attempts(of(service.hellos)),
    waits(of(service.waits), groups),
    failures(groups, of(service.alerts)),
    closers(of(service.connections)),
    turns(of(service.connections)),
    ports(service.ephemeral_ports, role),
    queue(service.accept_queue, role),
  ].filter(Boolean);
  const head = [
    h("h2", {}, "Details"),
    h("p", { class: "note" }, `Sums over the last ${time(Math.round(details.elapsed_seconds))}, as ${role}.`),
    ...of(service.estimated_handshakes).map((one) => h("p", { class: "note" }, estimated(one, groups))),
    ...of(service.estimated_turns).map((one) => h("p", { class: "note" }, estimatedTurns(one))),
  ];
  if (tables.length === 0) {
    return [...head, h("p", { class: "empty" }, `No activity as ${role} in that time.`)];
  }
  return [...head, h("div", { class: "panels" }, tables.map((one) => h("div", { class: "panel" }, one)))];
}

/** How far figures may be off of which a part is estimated. */
function estimated(one, groups) {
  const all = sum(groups, (group) => group.count);
  const cpu = sum(groups, (group) => group.cpu_seconds);
  return (
    `${count(one.count)} of ${counted(all, "handshake", "handshakes")} are estimated from those that were followed. ` +
    `With 95% probability there were ${count(all)} ± ${count(Math.ceil(one.count_margin))}, ` +
    `and they took ${time(cpu)} ± ${time(one.cpu_margin_seconds)} of CPU time.`
  );
}

function estimatedTurns(one) {
  const connections = counted(one.connections, "connection", "connections");
  return (
    `${connections} were not followed: they had ${count(one.count)} ± ${count(Math.ceil(one.count_margin))} turns, ` +
    "with 95% probability, estimated from connections that were followed."
  );
}

const sum = (rows, value) => rows.reduce((all, row) => all + value(row), 0);

/** Heading of a column of bars. */
const barHeading = () => h("th", { scope: "col", class: "bar-column" }, h("span", { class: "visually-hidden" }, "bar"));

/** Rows with a bar and a share for each, largest first. */
function shares(caption, heading, entries, columns) {
  const all = sum(entries, (one) => one.part);
  if (all === 0) return null;
  const rows = [...entries]
    .filter((one) => one.part > 0)
    .sort((one, other) => other.part - one.part)
    .map((one) => [one.name, barCell(one.part / all), percent(one.part / all), ...one.cells]);
  return table({ caption, headings: [heading, barHeading(), "share", ...columns], rows });
}

const resumptionName = (name) => (name === "none" ? "none (full)" : words(name));

function negotiated(groups) {
  const completed = groups.filter((one) => one.outcome === "completed");
  const fields = [
    ["version", "TLS version"],
    ["resumption", "Resumption"],
    ["group", "Key exchange group"],
    ["signature", "Signature"],
    ["cipher", "Cipher suite"],
  ];
  return fields.map(([field, caption]) => {
    const names = [...new Set(completed.map((one) => one[field]))];
    const entries = names.map((name) => {
      const those = completed.filter((one) => one[field] === name);
      const number = sum(those, (one) => one.count);
      const each = number > 0 ? time(sum(those, (one) => one.cpu_seconds) / number) : "–";
      const shown = field === "resumption" ? resumptionName(name) : name;
      return { name: shown, part: number, cells: [count(number), each] };
    });
    return shares(caption, words(field), entries, ["handshakes", "CPU per handshake"]);
  });
}

function costs(rows) {
  if (rows.length === 0) return null;
  const line = (name, of) => [name, ...rows.map((one) => time(of(one)))];
  return table({
    caption: "CPU and wall time per completed handshake",
    headings: ["time", ...rows.map((one) => resumptionName(one.resumption))],
    rows: [
      line("CPU, mean", (one) => one.cpu.mean),
      line("CPU, median", (one) => one.cpu.p50),
      line("CPU, p90", (one) => one.cpu.p90),
      line("CPU, p99", (one) => one.cpu.p99),
      line("wall time, median", (one) => one.duration.p50),
      line("wall time, p99", (one) => one.duration.p99),
    ],
  });
}

function steps(rows) {
  const entries = rows.map((one) => ({
    name: words(one.step),
    part: one.cpu_seconds,
    cells: [one.handshakes > 0 ? time(one.cpu_seconds / one.handshakes) : "–"],
  }));
  return shares("Handshake CPU by step", "step", entries, ["CPU per handshake"]);
}

/** By CPU samples, where probes do not measure the steps. Samples do not tell roles apart. */
function sampledSteps(service, role) {
  const isMeasured = service.steps.some((one) => one.role === role && one.measured_handshakes > 0);
  if (isMeasured || !service.handshakes.some((one) => one.role === role)) return null;
  const entries = service.sampled_steps.map((one) => ({
    name: one.steps.map(words).join(" or "),
    part: one.cpu_seconds,
    cells: [`${percent(one.share_low)} to ${percent(one.share_high)}`],
  }));
  return shares("Handshake CPU by step, from samples", "step", entries, ["95% CI"]);
}

function attempts(hellos) {
  const entries = hellos.flatMap((one) =>
    one.attempts.map(({ attempt, means, count: number }) => ({
      name: attempt === "not_offered" ? "not offered" : `${words(means)} ${words(attempt)}`,
      part: number,
      cells: [count(number)],
    })),
  );
  return shares("Session resumption", "result", entries, ["ClientHellos"]);
}

function waits(rows, groups) {
  const handshakes = sum(groups, (one) => one.count);
  if (handshakes === 0) return null;
  const entries = rows.map((one) => ({
    name: words(one.reason),
    part: one.seconds,
    cells: [time(one.seconds / handshakes)],
  }));
  return shares("Off-CPU time in handshakes", "reason", entries, ["per handshake"]);
}

function failures(groups, alerts) {
  const failed = groups.filter((one) => one.outcome !== "completed");
  const errors = failed.flatMap((one) => one.errors);
  const rows = [
    ...["failed", "abandoned"].map((outcome) => [
      outcome === "failed" ? "failed" : "abandoned by the peer",
      sum(failed.filter((one) => one.outcome === outcome), (one) => one.count),
    ]),
    ...[...new Set(errors.map((one) => one.name))].map((name) => [
      `library: ${words(name).toLowerCase()}`,
      sum(errors.filter((one) => one.name === name), (one) => one.count),
    ]),
    ...alerts.map((one) => [`alert ${one.direction}: ${words(one.description)}`, one.count]),
  ].filter(([, number]) => number > 0);
  if (rows.length === 0) return null;
  return table({
    caption: "Handshakes that were not completed, and alerts",
    headings: ["reason", "count"],
    rows: rows.map(([name, number]) => [name, count(number)]),
  });
}

const CLOSERS = { local: "this service", remote: "the peer", timeout: "nobody (no answer)" };

function closers(connections) {
  const entries = connections.flatMap((one) =>
    one.closed.map((closed) => ({
      name: CLOSERS[closed.closed_by] ?? closed.closed_by,
      part: closed.count,
      cells: [count(closed.count), count(closed.reset)],
    })),
  );
  return shares("Connections by the side that closed first", "closer", entries, ["connections", "reset"]);
}

/** Numbers of turns in classes: 0, 1, 2, 3 to 4, 5 to 8 and so on. */
const CLASSES = [0, 1, 2, 4, 8, 16, 32, 64, 128, Infinity];

function turns(connections) {
  const counts = connections.flatMap((one) => one.closed.flatMap((closed) => closed.turns));
  const entries = CLASSES.map((most, at) => {
    const least = at === 0 ? 0 : CLASSES[at - 1] + 1;
    const those = counts.filter((one) => one.from >= least && one.from <= most);
    const number = sum(those, (one) => one.connections);
    const name = most === Infinity ? "over 128" : least === most ? `${most}` : `${least} to ${most}`;
    return { name, number };
  });
  const all = sum(entries, (one) => one.number);
  if (all === 0) return null;
  return table({
    caption: connections.some((one) => one.turns_are_requests === false)
      ? "Turns per connection (HTTP/2: each may carry several requests)"
      : "Requests per connection",
    headings: ["turns", barHeading(), "share", "connections"],
    rows: entries
      .filter((one) => one.number > 0)
      .map((one) => [one.name, barCell(one.number / all), percent(one.number / all), count(one.number)]),
  });
}

function ports(used, role) {
  if (!used || role !== "client") return null;
  return table({
    caption: "Ephemeral ports toward the busiest remote endpoint",
    headings: ["used", "of", "share"],
    rows: [[count(used.used), count(used.available), percent(used.used / used.available)]],
  });
}

function queue(of, role) {
  if (!of || role !== "server") return null;
  const { queues, wait } = of;
  const rows = [
    queues && ["current length", `${count(queues.present.length)} of ${count(queues.present.limit)}`],
    queues && ["peak length", `${count(queues.peak.length)} of ${count(queues.peak.limit)}`],
    queues && ["packets dropped", count(queues.overflows)],
    wait && ["wait, median", time(wait.seconds.p50)],
    wait && ["wait, p99", time(wait.seconds.p99)],
  ].filter(Boolean);
  return rows.length > 0 ? table({ caption: "Accept queue", headings: ["figure", "value"], rows }) : null;
}

/** Where the service is, what it does TLS with, and what its figures come from. */
export function facts(service) {
  const sources = {
    library_probes: "handshakes from probes in its TLS library",
    socket_calls: "handshakes from socket calls",
    both: "handshakes from probes and socket calls",
    none: "no TLS seen",
  };
  return [
    service.executable,
    service.ports.length > 0 && `${service.ports.length === 1 ? "port" : "ports"} ${shortened(service.ports)}`,
    service.processes > 0 && (service.processes === 1 ? "1 process" : `${count(service.processes)} processes`),
    libraries(service.tls_libraries),
    sources[service.source],
    sentBytes(service),
  ].filter(Boolean).join(" · ");
}

const shortened = (all) => all.slice(0, 8).join(", ") + (all.length > 8 ? " and more" : "");

/** Each kind with its versions; not every file of a library says its own. */
function libraries(all) {
  const kinds = [...new Set(all.map((one) => one.kind))];
  const versions = (kind) => all.filter((one) => one.kind === kind && one.version).map((one) => one.version);
  return kinds.map((kind) => [kind, ...new Set(versions(kind))].join(" ")).join(", ");
}

function sentBytes(service) {
  const all = service.application_bytes.reduce((sent, one) => sent + one.sent, 0);
  return all > 0 && `${bytes(all)} sent over TLS`;
}
