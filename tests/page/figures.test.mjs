// What the charts show, from columns as the agent has them.

import assert from "node:assert/strict";
import test from "node:test";

import { FIGURES } from "./figures.js";

/** Two points: of 5 s and of 4 s. */
function history(columns) {
  return { ends: [5, 9], lengths: [5, 4], columns: new Map(Object.entries(columns)) };
}

const figure = (id) => FIGURES.find((one) => one.id === id);
const series = (id, label, columns, role = "server") =>
  figure(id).series(history(columns), role).find((one) => one.label === label);

test("activities are user and system time, and have shares of all", () => {
  const columns = {
    "cpu/user": [3, 3], "cpu/system": [2, 1],
    "activity/handshake/user": [2, 2], "activity/handshake/system": [0.5, 0],
    "activity/handshake/softirq": [9, 9],
    "activity/application/user": [1.25, 1.25],
    unattributed: [1, 0],
  };
  const handshakes = series("activity", "TLS handshakes", columns);
  assert.deepEqual(handshakes.values, [0.5, 0.5]);
  assert.equal(handshakes.mean, 0.5);
  assert.equal(handshakes.share, "56.3%");
  assert.equal(series("activity", "no sample", columns).share, "12.5%");
  assert.equal(series("activity", "CPU time (kernel)", columns).mean, 1);
});

test("without samples the CPU time is shown by mode", () => {
  const labels = figure("activity").series(history({ "cpu/user": [5, 4] }), "server").map((one) => one.label);
  assert.deepEqual(labels, ["user mode, no samples", "kernel, no samples"]);
});

test("turns have no rate where they were counted on few connections", () => {
  const columns = { "closed/server/local": [50, 30], "closed/server/remote": [50, 10], "turned/server": [90, 35] };
  const turns = series("turns", "turns", { ...columns, "turns/server": [200, 70] });
  assert.deepEqual([turns.values, turns.mean], [[40, null], null]);
  const idle = series("turns", "turns", {});
  assert.deepEqual([idle.values, idle.mean], [[0, 0], 0]);
});

test("a mean cost is that of all handshakes, not of the points", () => {
  const full = series("cost", "full", { "cost/server/full": [10, 1], "handshakes/server/completed/none": [100, 1] });
  assert.deepEqual(full.values, [0.1, 1]);
  assert.equal(full.mean, 11 / 101);
  assert.equal(series("cost", "resumed", {}).mean, null);
});

test("resumed handshakes are those by any means, in that role alone", () => {
  const columns = {
    "handshakes/server/completed/psk": [10, 0],
    "handshakes/server/completed/ticket": [0, 8],
    "handshakes/client/completed/psk": [100, 100],
  };
  assert.deepEqual(series("handshakes", "resumed", columns).values, [2, 2]);
  assert.deepEqual(series("handshakes", "resumed", columns, "client").values, [20, 25]);
});

test("what stands is not divided by time", () => {
  const standing = series("time-wait", "present", { "time_wait/server": [100, 50] });
  assert.deepEqual([standing.values, standing.mean], [[100, 50], 75]);
});

test("every figure says what it means that there is nothing", () => {
  for (const one of FIGURES) {
    assert.ok(one.series(history({}), "server").every((line) => line.values.every((value) => !value)), one.id);
    assert.match(one.empty("the last hour", "server"), /the last hour/);
  }
});
