import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unit } from "../src/protocol.ts";
import { formatQuantity, parseQuantity, readable, sliderPosition, sliderValue } from "../src/quantity.ts";

test("quantities are read as a scenario file writes them", () => {
  const cases: [string, Unit, number][] = [
    ["30KB", "bytes", 30_000], ["64KiB", "bytes", 65_536], ["1.8 MB", "bytes", 1_800_000], ["0", "bytes", 0],
    ["1Gbps", "bits/s", 1e9], ["12.5Gbps", "bits/s", 12.5e9], ["20us", "seconds", 2e-5], ["20µs", "seconds", 2e-5],
    ["12500ns", "seconds", 1.25e-5], ["0.05", "ratio", 0.05], ["5%", "ratio", 0.05], ["17", "packets", 17], ["1e3", "count", 1000],
  ];
  for (const [text, unit, value] of cases) assert.deepEqual(parseQuantity(text, unit), { value }, text);
});

test("what is no quantity is refused in words", () => {
  for (const [text, unit] of [["30", "bytes"], ["30Kb", "bytes"], ["fast", "bits/s"], ["", "ratio"], ["1Gbps", "seconds"]] as const) {
    const parsed = parseQuantity(text, unit);
    assert.ok("error" in parsed && parsed.error.length > 10, text);
  }
});

test("what is written can be read again", () => {
  for (const unit of ["bytes", "bits/s", "seconds", "ratio", "packets", "count"] as const) {
    for (const value of [0, 1.5, 30_000, 0.000123]) {
      const parsed = parseQuantity(formatQuantity(value, unit, 12), unit);
      assert.ok("value" in parsed && Math.abs(parsed.value - value) <= 1e-12 + value * 1e-9, `${value} ${unit}`);
    }
  }
  assert.equal(formatQuantity(30_000, "bytes"), "30KB");
  assert.equal(readable(2e-5, "seconds"), "20 us");
});

test("a slider's ends are the limits, and its points lead back to their values", () => {
  assert.equal(sliderValue(0, 1500, 1.8e6, true, "bytes"), 1500);
  assert.equal(sliderValue(1, 1500, 1.8e6, true, "bytes"), 1.8e6);
  for (const value of [1500, 30_000, 1.2e6]) {
    assert.equal(sliderValue(sliderPosition(value, 1500, 1.8e6, true), 1500, 1.8e6, true, "bytes"), value);
  }
  assert.equal(sliderValue(sliderPosition(0.05, 0, 1, false), 0, 1, false, "ratio"), 0.05);
  assert.equal(sliderValue(0.5, 1, 4, false, "packets"), 3);
  assert.equal(sliderPosition(0, 0, 100, true), 0);
});
