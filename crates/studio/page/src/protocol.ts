// The messages between the studio's server and this page. Numbers are SI: seconds, bytes, bits per
// second.

export type RunName = "a" | "b";
export type Unit = "bytes" | "bits/s" | "seconds" | "ratio" | "packets" | "count";
export type Status = "playing" | "paused" | "ended" | "replaying" | "failed";

export interface Node {
  name: string;
  kind: "switch" | "host";
}

/** One direction of a link. `measured` is the index of its port in the samples, if it has one. */
export interface Link {
  port: string;
  from: string;
  to: string;
  rate: number;
  delay: number;
  measured: number | null;
}

/** A queue length at which the port acts; `knob` names the knob that turns it. */
export interface Threshold {
  label: string;
  bytes: number;
  knob?: string | null;
}

export interface Port {
  name: string;
  rate: number;
  thresholds: Threshold[];
}

export interface Group {
  name: string;
  algorithm: string;
  flows: number;
}

export interface ValueKnob {
  id: string;
  section: string;
  label: string;
  unit: Unit;
  value: number;
  minimum: number;
  maximum: number;
  logarithmic: boolean;
}

export interface ActionKnob {
  id: string;
  section: string;
  label: string;
  action: string;
  undo?: string;
}

export type Knob = ValueKnob | ActionKnob;

export interface Scenario {
  name: string;
  title: string;
  source: string;
  duration: number;
  seed: number;
  nodes: Node[];
  links: Link[];
  ports: Port[];
  groups: Group[];
  knobs: Knob[];
}

export interface LogEntry {
  at: number;
  text: string;
  knob?: string;
  value?: number;
}

export interface RunState {
  run: RunName;
  now: number;
  status: Status;
  speed: number | null;
  log: LogEntry[];
  error: string | null;
  knobs: Record<string, number | string>;
}

export interface PortSamples {
  queue: number[];
  sent: number[];
  marks: number[];
  drops: number[];
}

export interface GroupSamples {
  goodput: number[];
  window: (number | null)[];
  delivered: number[];
  marks: number[];
  losses: number[];
  retransmitted: number[];
}

export interface Samples {
  run: RunName;
  time: number[];
  ports: PortSamples[];
  groups: GroupSamples[];
}

export interface Flow {
  name: string;
  source: string;
  destination: string;
  started: number | null;
  delivered: number | null;
  goodput: number | null;
  window: number | null;
  rtt: number | null;
  marks: number | null;
  losses: number | null;
}

export interface Flows {
  total: number;
  flows: Flow[];
}

export interface Completions {
  bins: string[];
  cdf: [number, number][];
  slowdown: { bin: string; p50: number; p95: number; p99: number; count: number }[];
}

export function isAction(knob: Knob): knob is ActionKnob {
  return "action" in knob;
}
