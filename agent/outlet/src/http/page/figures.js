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

/** Turns of this share of the connections that ended stand for all. */
const ENOUGH_COUNTED = 0.9;
const CLOSERS = ["local", "remote", "timeout"];

/** Turns each second, where they were counted on most connections that ended. */
function turns(held, role) {
  const ended = CLOSERS.map((closer) => `closed/${role}/${closer}`);
  const counted = [`turned/${role}`];
  const known = (some, all) => some >= ENOUGH_COUNTED * all;
  const [some, all] = [sum(held, counted), sum(held, ended)];
  const found = flow(held, "turns", "tcp-open", [`turns/${role}`]);
  return {
    ...found,
    values: found.values.map((value, at) => (known(some[at], all[at]) ? value : null)),
    mean: known(total(held, counted), total(held, ended)) ? found.mean : null,
  };
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
  "Handshakes occur when connections open, not on connections that stay open. If you expect some, " +
  "`tlsprof list --verbose` shows how this service is profiled, and `tlsprof doctor` what this kernel " +
  "supports.";

/** Each: id, title, note, format of values, `series(held, role)`, and `empty(window in words)`. */
export const FIGURES = [
  {
    id: "activity",
    title: "CPU by activity",
    note: "CPUs in use, from samples scaled to the kernel's accounting. Warm colours are TLS.",
    wide: true,
    stacked: true,
    format: cores,
    series: activities,
    empty: (window) => `This service used no CPU time in ${window}.`,
  },
  {
    id: "handshakes",
    title: "TLS handshakes",
    note: "Handshakes that ended, per second.",
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
    title: "CPU per handshake",
    note: "Mean over completed handshakes, user and system.",
    format: time,
    series: (held, role) => [
      each(held, "full", "handshake", [`cost/${role}/full`], completed(role, ["none"])),
      each(held, "resumed", "resumed", [`cost/${role}/resumed`], completed(role, RESUMED)),
      each(held, "full or resumed", "second", [`cost/${role}/unknown`], completed(role, ["unknown"])),
    ],
    empty: (window, role) => `No completed handshake as ${role} with known CPU time in ${window}.`,
  },
  {
    id: "connections",
    title: "TCP connections",
    note: "Opened and closed per second, by the side that closed first.",
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
    note: "Present on this side, from connections that this service closed first; each lasts a minute.",
    format: count,
    series: (held, role) => {
      const values = sum(held, [`time_wait/${role}`]);
      const mean = values.reduce((all, value) => all + value, 0) / Math.max(1, values.length);
      return [{ label: "present", colour: "tcp-close", values, mean }];
    },
    empty: (window) => `None in ${window}: this service did not close connections first.`,
  },
  {
    id: "turns",
    title: "Turns",
    note:
      "A turn is a request with its response; with HTTP/2 it may carry several. Counted when the connection ends; " +
      "no value where most connections were not followed, to keep the budget.",
    format: rate,
    series: (held, role) => [turns(held, role)],
    empty: (window) => `No connection with a turn ended in ${window}.`,
  },
  {
    id: "bytes",
    title: "Data over TLS",
    note: "Application data per second on TLS connections, counted when the connection ends.",
    format: byteRate,
    binary: true,
    series: (held, role) => [
      flow(held, "sent", "encryption", [`sent/${role}`]),
      flow(held, "received", "second", [`received/${role}`]),
    ],
    empty: (window) => `No TLS connection with data ended in ${window}.`,
  },
];
