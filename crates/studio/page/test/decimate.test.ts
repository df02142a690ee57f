import assert from "node:assert/strict";
import { test } from "node:test";
import { decimate } from "../src/decimate.ts";
import { Column } from "../src/series.ts";

const ramp = (count: number, value: (index: number) => number) => ({
  time: Float64Array.from({ length: count }, (_, index) => (index + 1) / count),
  values: Float64Array.from({ length: count }, (_, index) => value(index)),
  counter: false,
});

test("few samples are kept as they are", () => {
  const [x, y] = decimate([ramp(10, (index) => index)], 0, 1, 100);
  assert.deepEqual(x.length, 10);
  assert.deepEqual(y, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("the least and greatest of every column survive, in their order", () => {
  const spikes = ramp(100_000, (index) => (index === 54_321 ? 1000 : index === 54_322 ? -1000 : index % 7));
  const [x, y] = decimate([spikes], 0, 1, 500);
  assert.ok(x.length <= 1000);
  const numbers = y!.filter((value): value is number => typeof value === "number");
  assert.equal(Math.max(...numbers), 1000);
  assert.equal(numbers.indexOf(-1000), numbers.indexOf(1000) + 1);
});

test("x grows and every line has as many points as x", () => {
  const first = ramp(50_000, (index) => index);
  const second = ramp(30_000, (index) => -index);
  const [x, ...ys] = decimate([first, second], 0.2, 0.7, 300);
  for (let i = 1; i < x.length; i++) assert.ok(x[i]! > x[i - 1]!);
  for (const y of ys) assert.equal(y.length, x.length);
});

test("two runs with times of their own meet on one axis without gaps", () => {
  const a = { time: Float64Array.of(1, 2, 3), values: Float64Array.of(10, 20, 30), counter: false };
  const b = { time: Float64Array.of(2, 2.5), values: Float64Array.of(5, 6), counter: false };
  assert.deepEqual(decimate([a, b], 0, 4, 10), [[1, 2, 2.5, 3], [10, 20, undefined, 30], [undefined, 5, 6, undefined]]);
});

test("what is unknown becomes a gap", () => {
  const a = { time: Float64Array.of(1, 2, 3), values: Float64Array.of(NaN, 20, 30), counter: false };
  assert.deepEqual(decimate([a], 0, 4, 10), [[1, 2, 3], [null, 20, 30]]);
});

test("a counter's rate is its growth per second, whatever the zoom", () => {
  const counter = { ...ramp(40_000, (index) => 5 * (index + 1)), counter: true };
  for (const [from, to] of [[0, 1], [0.3, 0.35], [0.5, 0.502]] as const) {
    const [, y] = decimate([counter], from, to, 200);
    const rates = y!.filter((value): value is number => typeof value === "number");
    assert.ok(rates.length > 5);
    for (const rate of rates) assert.ok(Math.abs(rate - 200_000) < 1, String(rate));
  }
});

test("an empty line has no points", () => {
  const none = { time: new Float64Array(0), values: new Float64Array(0), counter: false };
  assert.deepEqual(decimate([none], 0, 1, 100), [[], []]);
});

test("two samples that lie close together make no spike of a rate", () => {
  const time = Float64Array.from([0.25, 0.499, 0.501, 0.75, 1]);
  const [, y] = decimate([{ time, values: time.map((at) => at * 100), counter: true, factor: 8 }], 0, 1, 60);
  const steady = y!.filter((value) => value != null) as number[];
  assert.ok(steady.every((value) => Math.abs(value - 800) < 1e-6), steady.join(" "));
  // One more packet between them is a part of what came before or after.
  const [, z] = decimate([{ time, values: Float64Array.from([25, 50, 51, 75, 100]), counter: true }], 0, 1, 60);
  assert.ok(z!.every((value) => value == null || value < 110), String(z));
});

test("blocks give the same extremes as all samples", () => {
  const column = new Column();
  const time = new Column();
  for (let i = 0; i < 20_000; i++) {
    time.push([i]);
    column.push([i % 977 === 0 ? NaN : Math.sin(i * 0.7) * (i % 331)]);
    if (i % 5000 === 100) { column.blocks(); column.truncate(i - 99); time.truncate(i - 99); for (let k = i - 99; k <= i; k++) { time.push([k]); column.push([k * 0.01]); } }
  }
  const line = { time: time.view(), values: column.view(), counter: false };
  for (const [from, to] of [[0, 20_000], [333, 17_111]] as const) {
    const [, plain] = decimate([line], from, to, 100);
    const [, blocks] = decimate([{ ...line, blocks: column.blocks() }], from, to, 100);
    const extremes = (y: (number | null | undefined)[]): unknown[] => Array.from({ length: 100 }, (_, i) => [y[2 * i], y[2 * i + 1]].sort());
    assert.deepEqual(extremes(blocks!), extremes(plain!));
  }
});
