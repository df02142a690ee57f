// What the page knows: the scenario, the runs and their samples, and who wants to hear of changes.
import type { RunName, RunState, Scenario, Threshold } from "./protocol.ts";
import { ProbeSeries } from "./probes.ts";
import { RunSeries } from "./series.ts";

export interface Run {
  state: RunState;
  series: RunSeries;
  probes: ProbeSeries;
}

export class Model {
  readonly runs = new Map<RunName, Run>();
  /** The thresholds of each run's measured ports. */
  readonly thresholds = new Map<RunName, Threshold[][]>();
  /** The run whose knobs and log are shown. */
  chosen: RunName = "a";
  private listeners: (() => void)[] = [];
  private unconfirmed = new Set<RunName>();
  private waiting = false;
  private lastTold = 0;

  /** Where virtual time begins. */
  readonly start = 0;

  constructor(readonly scenario: Scenario) {}

  /** Whether the runs can be played and changed, and their packets shown. */
  get isSimulated(): boolean {
    return this.scenario.kind === undefined;
  }

  /** Whether single flows have lines of their own. */
  get hasFlowLines(): boolean {
    return this.scenario.kind !== "finished";
  }

  get hasNetwork(): boolean {
    return this.scenario.nodes.length > 0;
  }

  /** The planned end. */
  get duration(): number {
    return this.scenario.duration;
  }

  /** Calls `listener` after changes, at most once in 50 ms. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    if (this.waiting) return;
    this.waiting = true;
    const wait = Math.max(0, 50 - (performance.now() - this.lastTold));
    setTimeout(() => requestAnimationFrame(() => {
      this.waiting = false;
      this.lastTold = performance.now();
      for (const listener of this.listeners) listener();
    }), wait);
  }

  /** Forgets all samples: the server is about to tell them anew, and which runs there are. */
  begin(): void {
    for (const run of this.runs.values()) {
      run.series.truncate(-Infinity);
      run.probes.truncate(-Infinity);
    }
    this.unconfirmed = new Set(this.runs.keys());
    setTimeout(() => { for (const run of this.unconfirmed) this.close(run); }, 2000);
    this.changed();
  }

  setState(state: RunState): void {
    const run = this.runs.get(state.run);
    this.unconfirmed.delete(state.run);
    if (run) run.state = state;
    else {
      const { ports, groups } = this.scenario;
      this.runs.set(state.run, { state, series: new RunSeries(ports.length, groups.length, groups.map(({ capacity }) => capacity)), probes: new ProbeSeries(groups) });
    }
    this.changed();
  }

  close(run: RunName): void {
    this.runs.delete(run);
    this.unconfirmed.delete(run);
    this.thresholds.delete(run);
    if (this.chosen === run) this.chosen = "a";
    this.changed();
  }

  choose(run: RunName): void {
    this.chosen = run;
    this.changed();
  }

  /** The scenario's name without folder and extension, for files that are saved. */
  get stem(): string {
    return this.scenario.name.replace(/^.*\/|\.toml$/g, "");
  }

  get all(): Run[] {
    return [...this.runs.values()].sort((x, y) => x.state.run.localeCompare(y.state.run));
  }

  get run(): Run | undefined {
    return this.runs.get(this.chosen) ?? this.runs.get("a");
  }

  /** The latest virtual time of all runs. */
  get now(): number {
    return Math.max(0, ...this.all.map((run) => Math.max(run.state.now, run.series.last)));
  }

  /** The flows whose lines the plots show. */
  get watched(): string[] {
    return this.run?.probes.names ?? [];
  }

  /** What a knob stands at in a run. */
  knobValue(run: RunState, id: string): number | undefined {
    if (run.knobs[id] !== undefined) return run.knobs[id];
    const knob = this.scenario.knobs.find((candidate) => candidate.id === id);
    return knob && "value" in knob ? knob.value : undefined;
  }
}
