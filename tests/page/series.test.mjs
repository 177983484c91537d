// The history of a service as the page puts it together.

import assert from "node:assert/strict";
import test from "node:test";

import { POINTS, empty, merge, perSecond, quotient, tail, total } from "./series.js";

/** What an agent answers: points of 5 s from number `first` on, `value` in each. */
function answer({ run = "a", service = "nginx", first = 1, points = 1, columns = ["opened/server"], value = 10 }) {
  const numbers = Array.from({ length: points }, (_, at) => first + at);
  return {
    run,
    service_name: service,
    first_point: first,
    ends: numbers.map((number) => number * 5),
    lengths: numbers.map(() => 5),
    columns: Object.fromEntries(columns.map((name) => [name, numbers.map(() => value)])),
  };
}

const start = () => merge(empty("nginx"), answer({ points: 3 }));

test("new points follow those that are held", () => {
  const held = merge(start(), answer({ first: 4, points: 2 }));
  assert.deepEqual(held.ends, [5, 10, 15, 20, 25]);
  assert.equal(held.newest, 5);
  assert.equal(total(held, ["opened/server"]), 50);
});

test("an answer without new points changes nothing", () => {
  assert.deepEqual(merge(start(), answer({ first: 4, points: 0, columns: [] })), start());
});

test("a figure that was zero before, or is zero now, has a value for each point", () => {
  const held = merge(start(), answer({ first: 4, points: 2, columns: ["closed/server/local"] }));
  assert.deepEqual(held.columns.get("opened/server"), [10, 10, 10, 0, 0]);
  assert.deepEqual(held.columns.get("closed/server/local"), [0, 0, 0, 10, 10]);
});

test("the history of two runs does not mix", () => {
  const held = merge(start(), answer({ run: "b", first: 1, points: 2, value: 1 }));
  assert.deepEqual([held.run, held.ends, total(held, ["opened/server"])], ["b", [5, 10], 2]);
  // Even if its numbers would follow.
  assert.deepEqual(merge(start(), answer({ run: "b", first: 4 })).ends, [20]);
});

test("neither does that of two services, nor one with a hole", () => {
  assert.deepEqual(merge(start(), answer({ service: "apache", first: 4 })).ends, [20]);
  assert.deepEqual(merge(start(), answer({ first: 6 })).ends, [30]);
});

test("an hour is kept", () => {
  let held = empty("nginx");
  for (let first = 1; first <= 1000; first += 8) held = merge(held, answer({ first, points: 8 }));
  assert.equal(held.ends.length, POINTS);
  assert.equal(held.columns.get("opened/server").length, POINTS);
  assert.equal(held.ends.at(-1), 5000);
});

test("a window holds the points that ended in it", () => {
  const held = merge(empty("nginx"), answer({ points: 100 }));
  assert.equal(tail(held, 300).ends.length, 60);
  assert.equal(total(tail(held, 300), ["opened/server"]), 600);
  assert.equal(tail(held, 3600).ends.length, 100);
  assert.deepEqual(tail(empty("nginx"), 300).ends, []);
});

test("rates divide by the length of each point, and nothing is divided by zero", () => {
  const held = start();
  held.lengths[1] = 4;
  assert.deepEqual(perSecond(held, ["opened/server", "unknown"]), [2, 2.5, 2]);
  held.columns.set("cost", [1, 1, 1]).set("count", [2, 0, 4]);
  assert.deepEqual(quotient(held, ["cost"], ["count"]), [0.5, null, 0.25]);
});
