// Numbers as people read them: the same cases as in agent/common/src/units.rs.

import assert from "node:assert/strict";
import test from "node:test";

import { byteRate, bytes, cores, count, counted, percent, rate, time } from "./format.js";

const each = (format, cases) => cases.forEach(([value, text]) => assert.equal(format(value), text));

test("times have three digits and a unit", () => {
  each(time, [
    [0, "0"],
    [850e-9, "850 ns"],
    [1.62e-6, "1.62 µs"],
    [869e-6, "869 µs"],
    [999.6e-6, "1.00 ms"],
    [16.24e-3, "16.2 ms"],
    [1.5, "1.50 s"],
    [24.12, "24.1 s"],
    [125, "2 min 5 s"],
    [179.7, "3 min 0 s"],
    [7500, "2 h 5 min"],
    [NaN, "–"],
  ]);
});

test("counts have separators", () => {
  each(count, [[0, "0"], [999, "999"], [1234, "1,234"], [12_345_678, "12,345,678"]]);
  assert.equal(counted(1, "process", "processes"), "1 process");
  assert.equal(counted(3, "process", "processes"), "3 processes");
});

test("shares, rates and sizes", () => {
  each(percent, [[0.8312, "83.1%"], [0.0001, "<0.1%"], [0, "0.0%"], [null, "–"], [NaN, "–"]]);
  each(bytes, [[512, "512 B"], [22_334_955, "21.3 MiB"], [5 * 2 ** 30, "5.0 GiB"]]);
  each(rate, [[400.13, "400/s"], [4001.3, "4,001/s"], [1 / 30, "0.03/s"], [12.34, "12.3/s"], [0, "0/s"]]);
  assert.equal(byteRate(2048), "2.0 KiB/s");
});

test("CPUs in use", () => {
  each(cores, [[0, "0"], [0.0001, "<0.001"], [0.0432, "0.043"], [0.5, "0.50"], [12.34, "12.3"]]);
});
