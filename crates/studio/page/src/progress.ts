// Bytes by when they can have come at the latest. A hole in the data that is repaired delivers at once what has long been
// there: as a rate that would be more than the link carries.
import { Column } from "./series.ts";

export class Progress {
  readonly column = new Column();

  /** Of a link that carries `most` bytes a second. */
  constructor(private readonly most: number) {}

  /** Follows a cumulated column that has grown. */
  append(time: Column, delivered: Column): void {
    const known = this.column.length;
    this.column.push(delivered.view(), known);
    this.spread(time, known);
  }

  /** Follows a column that has been cut: its end may have been raised for what came later. */
  cut(time: Column, delivered: Column): void {
    this.column.truncate(delivered.length);
    const [progress, values] = [this.column.view(), delivered.view()];
    let raised = progress.length;
    while (raised > 0 && progress[raised - 1]! > values[raised - 1]!) progress[raised - 1] = values[--raised]!;
    this.spread(time, raised);
  }

  // What no link can carry since the sample before has come before it; samples before `from` are even among themselves.
  private spread(time: Column, from: number): void {
    const [times, progress] = [time.view(), this.column.view()];
    for (let i = progress.length - 1; i > 0; i--) {
      const before = progress[i]! - this.most * (times[i]! - times[i - 1]!);
      if (before > progress[i - 1]!) progress[i - 1] = before;
      else if (i <= from) return;
    }
  }
}

/** Follows columns of which the capacity is known. */
export function progressOf(capacity: number | null | undefined): Progress | null {
  return capacity === null || capacity === undefined || !(capacity > 0) ? null : new Progress(capacity / 8);
}
