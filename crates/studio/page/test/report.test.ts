import assert from "node:assert/strict";
import { test } from "node:test";
import { labels, marksBetween, type Axis } from "../src/axis.ts";
import { bandOutline, valueAt } from "../src/overlay.ts";
import { lineDash, markerShape } from "../src/palette.ts";
import type { Line } from "../src/plot.ts";
import { Columns, decoded, type ReportData } from "../src/report/data.ts";
import { Column } from "../src/series.ts";
import { logTicks } from "../src/ticks.ts";

// As the tests of the Rust crate have them.
test("numbers are read as they are written", () => {
  assert.deepEqual([...decoded("AAAAAAAAgD8AAMA/", 3)], [0, 1, 1.5]);
  assert.deepEqual([...decoded([2, "AAAAgP//"], 3)], [0, 1, 2]);
  assert.deepEqual([...decoded(2.5, 2)], [2.5, 2.5]);
  assert.deepEqual([...decoded("", 0)], []);
});

test("lines share the places of their points", () => {
  const none = { names: [], measures: [], leftOut: 0 };
  const report: ReportData = {
    ports: none, groups: none, flows: none,
    axes: [], xs: ["AAAAAAAAgD8AAMA/"], sections: [],
  };
  const columns = new Columns(report);
  assert.equal(columns.x(0), columns.x(0));
  assert.deepEqual([...columns.of(7, 0).view()], [7, 7, 7]);
});

test("lines of one run differ by dashes and markers, and those of two runs by dashes", () => {
  const look = (index: number, run: "a" | "b", two: boolean) => `${lineDash({ index, run }, two)} ${markerShape({ index, run })}`;
  const alone = Array.from({ length: 16 }, (_, index) => look(index, "a", false));
  assert.equal(new Set(alone).size, 16);
  // Those that are drawn next to each other differ by dashes alone.
  for (let index = 1; index < 16; index++) assert.notDeepEqual(lineDash({ index, run: "a" }, false), lineDash({ index: index - 1, run: "a" }, false));
  for (let index = 0; index < 16; index++) assert.notDeepEqual(lineDash({ index, run: "a" }, true), lineDash({ index, run: "b" }, true));
});

test("logarithmic marks are 1, 2 and 5 times powers of ten, or powers alone", () => {
  assert.deepEqual(logTicks(1, 20, 6), [1, 2, 5, 10, 20]);
  assert.deepEqual(logTicks(1e-5, 1, 6), [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]);
  assert.equal(logTicks(1e-9, 1e9, 6).length <= 7, true);
  assert.equal(logTicks(1.1, 1.2, 6).length, 0);
});

test("an axis has labels in fitting units, or its own", () => {
  const seconds: Axis = { name: "completion time", unit: "seconds", logarithmic: true };
  assert.deepEqual(labels(seconds, [1e-5, 0.001, 1]), ["10 us", "1 ms", "1 s"]);
  const time: Axis = { name: "time", unit: "seconds", logarithmic: false };
  assert.deepEqual(labels(time, [0, 0.001, 0.002]), ["0 ms", "1 ms", "2 ms"]);
  const sizes: Axis = { name: "size", unit: "bytes", logarithmic: true, marks: [{ at: 1e4, text: "10KB" }, { at: 1e9, text: "∞" }] };
  assert.deepEqual(labels(sizes, [1e4, 1e9]), ["10KB", "∞"]);
  assert.deepEqual(marksBetween(sizes, 1e5, 2e9, 8), [1e9]);
  assert.equal(marksBetween(time, 0, 1, 8), null);
});

test("a line has values between its points, and none in gaps", () => {
  const x = [0, 1, 2, 3, 4];
  assert.equal(valueAt(x, [0, undefined, 4, null, 1], 1), 2);
  assert.equal(valueAt(x, [0, undefined, 4, null, 1], 2.5), null);
  assert.equal(valueAt(x, [undefined, 1, 2, 3, 4], 0.5), null);
  assert.equal(valueAt(x, [0, 1, 2, 3, 4], 9), null);
});

test("a band goes along its greatest values and back along its least", () => {
  const column = (...values: number[]) => { const made = new Column(); made.push(values); return made; };
  const line: Line = {
    key: "a", label: "a", index: 0, run: "a", counter: false, time: column(0, 1, 2), values: column(2, 2, 2),
    band: { low: column(1, NaN, 1), high: column(3, 3, 4) },
  };
  assert.equal(bandOutline(line, (x) => x, (y) => y), "M0.0 3.0L2.0 4.0L2.0 1.0L0.0 1.0Z");
  assert.equal(bandOutline({ ...line, band: undefined }, (x) => x, (y) => y), "");
});
