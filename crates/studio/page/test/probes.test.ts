import assert from "node:assert/strict";
import { test } from "node:test";
import { ProbeSeries } from "../src/probes.ts";

const group = { rtt: [1, 2], alpha: [null, null], fairness: [null, 0.5] };
const flow = { delivered: [null, 3], window: [1, 2], rtt: [1, 2], alpha: [null, null], marks: [0, 1], retransmitted: [0, 0] };

test("what is seen is added, and a way back forgets it", () => {
  const series = new ProbeSeries([{ name: "web" }]);
  series.watch(["web/1"]);
  series.append({ run: "a", time: [1, 2], groups: [group], fairness: [null, 0.5], flows: [flow] });
  assert.deepEqual([...series.groups[0]!.rtt.view()], [1, 2]);
  assert.ok(series.groups[0]!.alpha.isEmpty);
  assert.deepEqual([...series.flows[0]!.delivered.view()], [NaN, 3]);
  series.truncate(2);
  assert.deepEqual([...series.time.view()], [1]);
  assert.equal(series.flows[0]!.window.length, 1);
});

test("other flows begin anew", () => {
  const series = new ProbeSeries([{ name: "web" }]);
  series.watch(["web/1"]);
  series.append({ run: "a", time: [1, 2], groups: [group], fairness: [1, 1], flows: [flow] });
  series.watch(["web/2", "web/3"]);
  assert.equal(series.time.length, 0);
  assert.deepEqual(series.flows.map(({ rtt }) => rtt.length), [0, 0]);
});
