// A finding in lines, as in the report: agent/outlet/src/report/findings.rs has the same cases.

import assert from "node:assert/strict";
import test from "node:test";

import { saving, sentences } from "./findings.js";

test("a full stop within a name ends no sentence", () => {
  assert.deepEqual(sentences("TLS 1.2 is old. So is that."), ["TLS 1.2 is old.", "So is that."]);
  assert.deepEqual(sentences("One."), ["One."]);
});

test("an upper bound is no exact figure", () => {
  for (const [capacity, text] of [[1.04, "1.0"], [2.39, "2.3"], [25.88, "20"], [100, "100"]]) {
    const line = saving({
      kind: "at_most",
      cpu_ratio: { likely: 0.5 },
      capacity_ratio: { likely: capacity },
      caveat: "if clients agree",
    });
    assert.equal(line, `Would save at most about 50% of its CPU (up to ${text}x capacity): if clients agree.`);
  }
});

test("a saving has its interval and its capacity", () => {
  const line = saving({
    kind: "saving",
    cpu_ratio: { low: 0.2, likely: 0.25, high: 0.3 },
    capacity_ratio: { likely: 1.333 },
  });
  assert.equal(line, "Would save 25.0% of its CPU (20.0% to 30.0%): 1.33x capacity.");
});

test("what cannot be predicted has its reason", () => {
  assert.equal(saving({ method: "no cost is known" }), "No saving predicted: no cost is known.");
  assert.equal(saving({ method: "" }), "");
});
