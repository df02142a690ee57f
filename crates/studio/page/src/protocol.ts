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

/** A queue length at which the port acts, from one time until another (or on). */
export interface Threshold {
  label: string;
  bytes: number;
  from?: number;
  until?: number | null;
}

/** The thresholds of a run's measured ports, as its changes have made them. */
export interface Thresholds {
  run: RunName;
  ports: Threshold[][];
}

export interface Port {
  name: string;
  rate: number;
}

export interface Group {
  name: string;
  algorithm: string;
  flows: number;
  /** The goodput that the slowest of the links that all its flows cross can carry. */
  capacity?: number | null;
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
  /** Whether the maximum stands for no limit at all. */
  open?: boolean;
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
  /** Finished runs and live runs can only be looked at. */
  kind?: "finished" | "live";
  /** Whether it is or was a live run. */
  live?: boolean;
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

/** Something that is asked for its status each second. */
export interface Observed {
  kind: "enforcer" | "controller";
  /** Where it is asked. */
  name: string;
}

/** An answer, in seconds since the studio was started, or why there was none. */
export interface Told {
  at: number;
  answer?: unknown;
  problem?: string;
}

export interface LogEntry {
  at: number;
  text: string;
  knob?: string;
  value?: number | null;
}

export interface RunState {
  run: RunName;
  now: number;
  status: Status;
  speed: number | null;
  log: LogEntry[];
  error: string | null;
  /** The values of the knobs that have been turned. */
  knobs: Record<string, number>;
  /** The IDs of the links that have been failed and not restored. */
  failed: string[];
}

export interface PortSamples {
  queue: number[];
  sent: number[];
  marks: number[];
  drops: number[];
}

export interface GroupSamples {
  window: (number | null)[];
  delivered: number[];
  marks: number[];
  retransmitted: number[];
  timeouts: number[];
}

export interface Samples {
  run: RunName;
  time: number[];
  ports: PortSamples[];
  groups: GroupSamples[];
}

type Seen = (number | null)[];

/** What is seen of groups and of watched flows, at equal distances of virtual time. */
export interface Probes {
  run: RunName;
  time: number[];
  groups: { rtt: Seen; alpha: Seen; fairness: Seen }[];
  fairness: Seen;
  flows: { delivered: Seen; window: Seen; rtt: Seen; alpha: Seen; marks: Seen; retransmitted: Seen }[];
}

/** The flows that are watched in a run. What was seen of them comes anew. */
export interface Watched {
  run: RunName;
  flows: string[];
}

/** The hashes of the files that `weir run --out` writes for a run. */
export interface Digests {
  files: { name: string; sha256: string }[];
}

/** A packet's way over one link. `from` and `to` are places among the lanes. */
export interface Hop {
  port: string;
  from: number;
  to: number;
  sent: number;
  arrived: number;
  ecn: string;
  marked: boolean;
}

export interface Packet {
  flow: string;
  kind: string;
  text: string;
  length: number;
  retransmitted: boolean;
  /** The node that lost it. */
  lost: string | null;
  hops: Hop[];
}

/** The last packets of a flow or a port up to a time. */
export interface PacketTrace {
  from: number;
  until: number;
  lanes: Node[];
  packets: Packet[];
  is_cut: boolean;
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
  marks: number;
  retransmitted: number;
  timeouts: number;
}

export interface Flows {
  total: number;
  flows: Flow[];
}

/** Slowdowns of a class of sizes. What no transfer has is absent. */
export interface SlowdownStatistics {
  completed: number;
  p50?: number;
  p95?: number;
  p99?: number;
}

/** The completed transfers of a group: points of the distribution function, and the slowdowns by size. */
export interface Completions {
  group: string;
  cdf: [number, number][];
  slowdown: { sizes: Record<string, SlowdownStatistics> } | null;
}

export function isObserved(about: Scenario | Observed): about is Observed {
  return about.kind === "enforcer" || about.kind === "controller";
}

export function isAction(knob: Knob): knob is ActionKnob {
  return "action" in knob;
}
