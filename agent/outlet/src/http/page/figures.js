// What the charts of a service show, from the columns of its history.

import { byteRate, cores, count, percent, rate, time } from "./format.js";
import { perSecond, quotient, sum, total } from "./series.js";

const ACTIVITIES = [
  ["handshake", "TLS handshakes", "handshake"],
  ["encryption", "encryption", "encryption"],
  ["tcp_open", "opening TCP", "tcp-open"],
  ["tcp_close", "closing TCP", "tcp-close"],
  ["socket_io", "socket I/O", "socket-io"],
  ["application", "application", "application"],
];

/** Colours of activities by their name in the interface. */
export const ACTIVITY_COLOURS = new Map(ACTIVITIES.map(([name, , colour]) => [name, colour]));

const RESUMED = ["session_id", "ticket", "psk", "abbreviated"];
const completed = (role, kinds) => kinds.map((kind) => `handshakes/${role}/completed/${kind}`);

/** A series of what came each second, and its mean. */
function flow(held, label, colour, names, more = {}) {
  const seconds = held.lengths.reduce((all, one) => all + one, 0);
  return { label, colour, values: perSecond(held, names), mean: total(held, names) / seconds, ...more };
}

/** A series of one thing for each of another. */
function each(held, label, colour, of, by) {
  const things = total(held, by);
  return { label, colour, values: quotient(held, of, by), mean: things > 0 ? total(held, of) / things : null };
}

/** What the CPU time went into; by mode alone where no sample tells. */
function activities(held) {
  const names = ([activity]) => [`activity/${activity}/user`, `activity/${activity}/system`];
  const all = total(held, ACTIVITIES.flatMap(names));
  const lost = total(held, ["unattributed"]);
  const share = (part) => (all + lost > 0 ? percent(part / (all + lost)) : "–");
  const parts = ACTIVITIES.map((one) =>
    flow(held, one[1], one[2], names(one), { always: true, share: share(total(held, names(one))) }),
  );
  const unknown = flow(held, "no sample", "unattributed", ["unattributed"], { share: share(lost) });
  const kernel = flow(held, "CPU time (kernel)", "all", ["cpu/user", "cpu/system"], { line: true, share: "" });
  return all > 0 ? [...parts, unknown, kernel] : modes(held);
}

const modes = (held) => [
  flow(held, "user mode, no samples", "application", ["cpu/user"]),
  flow(held, "kernel, no samples", "socket-io", ["cpu/system"]),
];

const NO_HANDSHAKE =
  "They are made when connections open; on connections that stay open there are none. If there should " +
  "be some, `tlsprof list --verbose` says how this service is profiled, and `tlsprof doctor` what this " +
  "kernel allows.";

/** Each: id, title, note, format of values, `series(held, role)`, and `empty(window in words)`. */
export const FIGURES = [
  {
    id: "activity",
    title: "CPU by activity",
    note: "CPUs in use, from samples scaled to what the kernel accounts. Warm colours are TLS.",
    wide: true,
    stacked: true,
    format: cores,
    series: activities,
    empty: (window) => `This service used no CPU time in ${window}.`,
  },
  {
    id: "handshakes",
    title: "TLS handshakes",
    note: "Handshakes that ended, each second.",
    format: rate,
    series: (held, role) => [
      flow(held, "full", "handshake", completed(role, ["none"])),
      flow(held, "resumed", "resumed", completed(role, RESUMED)),
      flow(held, "full or resumed", "second", completed(role, ["unknown"])),
      flow(held, "failed", "failed", [`handshakes/${role}/failed`]),
      flow(held, "abandoned by the peer", "application", [`handshakes/${role}/abandoned`]),
      flow(held, "resumption refused", "encryption", [`refused/${role}`], { line: true }),
    ],
    empty: (window, role) => `No TLS handshake as ${role} in ${window}. ${NO_HANDSHAKE}`,
  },
  {
    id: "cost",
    title: "CPU time of one handshake",
    note: "Mean of completed handshakes, user and system.",
    format: time,
    series: (held, role) => [
      each(held, "full", "handshake", [`cost/${role}/full`], [`costed/${role}/full`]),
      each(held, "resumed", "resumed", [`cost/${role}/resumed`], [`costed/${role}/resumed`]),
      each(held, "full or resumed", "second", [`cost/${role}/unknown`], [`costed/${role}/unknown`]),
    ],
    empty: (window, role) => `No handshake as ${role} was completed in ${window} of which the CPU time is known.`,
  },
  {
    id: "connections",
    title: "TCP connections",
    note: "Opened and closed each second, by who closed first.",
    format: rate,
    series: (held, role) => [
      flow(held, "opened", "tcp-open", [`opened/${role}`]),
      flow(held, "closed by this service", "tcp-close", [`closed/${role}/local`]),
      flow(held, "closed by the peer", "second", [`closed/${role}/remote`]),
      flow(held, "peer no longer answered", "failed", [`closed/${role}/timeout`]),
      flow(held, "accept queue full (packets)", "failed", role === "server" ? ["overflows"] : [], { line: true }),
    ],
    empty: (window, role) => `No TCP connection was opened or closed as ${role} in ${window}.`,
  },
  {
    id: "time-wait",
    title: "TIME_WAIT sockets",
    note: "Standing on this side, of connections that this service closed first; each stands for a minute.",
    format: count,
    series: (held, role) => {
      const values = sum(held, [`time_wait/${role}`]);
      const mean = values.reduce((all, value) => all + value, 0) / Math.max(1, values.length);
      return [{ label: "standing", colour: "tcp-close", values, mean }];
    },
    empty: (window) => `None in ${window}: this service did not close connections first.`,
  },
  {
    id: "turns",
    title: "Turns",
    note: "A turn is a request with its response; over HTTP/2 it may carry several. Counted when the connection ends.",
    format: rate,
    series: (held, role) => [flow(held, "turns", "tcp-open", [`turns/${role}`])],
    empty: (window) => `No connection with a turn ended in ${window}.`,
  },
  {
    id: "bytes",
    title: "Data over TLS",
    note: "Application data each second on TLS connections. It is counted when their connection ends.",
    format: byteRate,
    binary: true,
    series: (held, role) => [
      flow(held, "sent", "encryption", [`sent/${role}`]),
      flow(held, "received", "second", [`received/${role}`]),
    ],
    empty: (window) => `No TLS connection with data ended in ${window}.`,
  },
];
