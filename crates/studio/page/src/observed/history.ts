// What was answered so far, as columns over time, for plots.
import type { Extent } from "../board.ts";
import type { Moment } from "../plot.ts";
import { Column, firstAtLeast } from "../series.ts";

/** Columns of one thing, each as long as `time`. Where a thing was away, there is a gap. */
export class Track {
  readonly time = new Column();
  private readonly columns = new Map<string, Column>();
  private lastAnswer = -1;

  /** Adds what an answer says; `answer` is its number, `before` the time of the one before it. */
  add(answer: number, at: number, before: number, values: Record<string, number | null | undefined>): void {
    if (this.lastAnswer >= 0 && this.lastAnswer < answer - 1) this.push((before + at) / 2, {});
    this.lastAnswer = answer;
    this.push(at, values);
  }

  get(name: string): Column {
    let column = this.columns.get(name);
    if (!column) {
      column = new Column();
      column.push(new Array<null>(this.time.length).fill(null));
      this.columns.set(name, column);
    }
    return column;
  }

  /** The last value, if the last answer had it. */
  last(name: string): number {
    const column = this.get(name);
    return column.at(column.length - 1);
  }

  isIn(answer: number): boolean {
    return this.lastAnswer === answer;
  }

  /** The mean of a column's values in [from, to]. */
  mean(name: string, from: number, to: number): number {
    const [times, values] = [this.time.view(), this.get(name).view()];
    let [sum, count] = [0, 0];
    for (let i = firstAtLeast(times, from); i < times.length && times[i]! <= to; i++) {
      if (Number.isNaN(values[i]!)) continue;
      sum += values[i]!;
      count++;
    }
    return count > 0 ? sum / count : NaN;
  }

  private push(at: number, values: Record<string, number | null | undefined>): void {
    for (const name of Object.keys(values)) this.get(name);
    this.time.push([at]);
    for (const [name, column] of this.columns) column.push([values[name] ?? null]);
  }
}

/** Tracks by name. */
export class Tracks {
  private readonly tracks = new Map<string, Track>();

  constructor(private readonly history: History) {}

  add(name: string, values: Record<string, number | null | undefined>): void {
    const { answers, now, before } = this.history;
    let track = this.tracks.get(name);
    if (!track) this.tracks.set(name, (track = new Track()));
    track.add(answers, now, before, values);
  }

  get(name: string): Track | undefined {
    return this.tracks.get(name);
  }

  /** The names of what the last answer has, or has had at any time. */
  names(onlyPresent: boolean): string[] {
    return [...this.tracks].filter(([, track]) => !onlyPresent || track.isIn(this.history.answers)).map(([name]) => name);
  }
}

/** The time line of the answers. */
export class History implements Extent {
  start = 0;
  now = 0;
  before = 0;
  readonly duration = 60;
  /** The number of answers so far, those without content among them. */
  answers = 0;
  /** Why there was no answer the last time. */
  problem: string | null = null;
  readonly moments: Moment[] = [];
  private readonly states = new Map<string, string>();
  private listeners: (() => void)[] = [];

  constructor(readonly stem: string) {}

  /** Begins an answer at a time. */
  begin(at: number): void {
    if (this.answers === 0) this.start = at;
    this.answers++;
    this.before = this.now;
    this.now = at;
  }

  /** Notes a moment when something is another than in the answer before; the first time it is only remembered. */
  watch(name: string, state: string, text: string): void {
    const known = this.states.get(name);
    this.states.set(name, state);
    if (known !== undefined && known !== state) this.moments.push({ at: this.now, text });
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}
