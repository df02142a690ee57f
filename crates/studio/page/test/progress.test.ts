import assert from "node:assert/strict";
import { test } from "node:test";
import { Progress } from "../src/progress.ts";
import { Column } from "../src/series.ts";

function column(values: number[]): Column {
  const column = new Column();
  column.push(values);
  return column;
}

test("what a link can carry stays as it is", () => {
  const progress = new Progress(100);
  progress.append(column([1, 2, 3]), column([100, 200, 250]));
  assert.deepEqual([...progress.column.view()], [100, 200, 250]);
});

test("a jump is spread over the time before it, at the link's rate", () => {
  const progress = new Progress(100);
  // A hole at 2, repaired at 5: the link was full all the time.
  progress.append(column([1, 2, 3, 4, 5]), column([100, 150, 150, 150, 500]));
  assert.deepEqual([...progress.column.view()], [100, 200, 300, 400, 500]);
});

test("a jump that comes with later samples changes what was known", () => {
  const [time, delivered, progress] = [column([1, 2, 3]), column([100, 100, 100]), new Progress(100)];
  progress.append(time, delivered);
  time.push([4, 5]);
  delivered.push([400, 500]);
  progress.append(time, delivered);
  assert.deepEqual([...progress.column.view()], [100, 200, 300, 400, 500]);
});

test("after a way back the past is what was delivered by then", () => {
  const [time, delivered, progress] = [column([1, 2, 3, 4]), column([100, 100, 100, 400]), new Progress(100)];
  progress.append(time, delivered);
  time.truncate(3);
  delivered.truncate(3);
  progress.cut(time, delivered);
  assert.deepEqual([...progress.column.view()], [100, 100, 100]);
});

test("a jump before the cut stays spread", () => {
  const [time, delivered, progress] = [column([1, 2, 3, 4, 5, 6]), column([100, 100, 300, 300, 300, 600]), new Progress(100)];
  progress.append(time, delivered);
  assert.deepEqual([...progress.column.view()], [100, 200, 300, 400, 500, 600]);
  time.truncate(4);
  delivered.truncate(4);
  progress.cut(time, delivered);
  assert.deepEqual([...progress.column.view()], [100, 200, 300, 300]);
});
