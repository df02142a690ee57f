import assert from "node:assert/strict";
import { test } from "node:test";
import { growth, meanOverTime, meanRate, RunSeries } from "../src/series.ts";

function samples(times: number[], queue: number[]) {
  return { run: "a" as const, time: times, ports: [{ queue, sent: queue, marks: queue, drops: queue }], groups: [] };
}

test("samples are added, and those known already are not", () => {
  const series = new RunSeries(1, 0);
  series.append(samples([1, 2], [10, 20]));
  series.append(samples([2, 3], [99, 30]));
  assert.deepEqual([...series.portTime.view()], [1, 2, 3]);
  assert.deepEqual([...series.ports[0]!.queue.view()], [10, 20, 30]);
});

test("a port without numbers keeps as many places as there are times", () => {
  const series = new RunSeries(2, 0);
  series.append(samples([1, 2], [10, 20]));
  assert.deepEqual([...series.ports[1]!.queue.view()], [NaN, NaN]);
});

test("a seek back forgets what was later", () => {
  const series = new RunSeries(1, 0);
  series.append(samples([1, 2, 3], [10, 20, 30]));
  series.truncate(2);
  series.append(samples([2.5], [25]));
  assert.deepEqual([...series.portTime.view()], [1, 2.5]);
  assert.deepEqual([...series.ports[0]!.queue.view()], [10, 25]);
});

test("ports and groups may be sampled at different times, as in a live run", () => {
  const series = new RunSeries(1, 1);
  series.append(samples([1, 2], [10, 20]));
  series.append({ run: "a", time: [1.5], ports: [], groups: [{ window: [7], delivered: [8], marks: [0], retransmitted: [0], timeouts: [0] }] });
  assert.deepEqual([...series.portTime.view()], [1, 2]);
  assert.deepEqual([...series.groupTime.view()], [1.5]);
  assert.deepEqual([...series.groups[0]!.delivered.view()], [8]);
  assert.equal(series.last, 2);
  series.truncate(1.8);
  assert.deepEqual([series.portTime.length, series.groupTime.length], [1, 1]);
});

test("many samples outgrow the first buffer", () => {
  const series = new RunSeries(1, 0);
  for (let i = 0; i < 5000; i++) series.append(samples([i + 1], [i]));
  assert.equal(series.ports[0]!.queue.at(4999), 4999);
});

test("means weigh samples by the time that they stand for", () => {
  const series = new RunSeries(1, 0);
  series.append(samples([0, 1, 4], [100, 10, 20]));
  assert.equal(meanOverTime(series.portTime, series.ports[0]!.queue, 0, 4), (10 * 1 + 20 * 3) / 4);
});

test("growth counts from the last sample up to the range", () => {
  const series = new RunSeries(1, 0);
  series.append(samples([1, 2, 3, 4], [5, 7, 11, 20]));
  assert.equal(growth(series.portTime, series.ports[0]!.marks, 0, 10), 20);
  assert.equal(growth(series.portTime, series.ports[0]!.marks, 2.5, 3.5), 4);
});

test("a mean rate is over the time that has samples", () => {
  const series = new RunSeries(1, 0);
  series.append(samples([1, 2, 3, 4], [100, 200, 300, 400]));
  assert.equal(meanRate(series.portTime, series.ports[0]!.sent, 0, 100), 800);
  assert.equal(meanRate(series.portTime, series.ports[0]!.sent, 2, 4), 8 * 200 / 2);
  assert.ok(Number.isNaN(meanRate(series.portTime, series.ports[0]!.sent, 9, 10)));
});
