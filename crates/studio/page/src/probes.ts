// What is seen of groups and of watched flows at equal distances of virtual time.
import { progressOf, type Progress } from "./progress.ts";
import type { Group, Probes } from "./protocol.ts";
import { Column, firstAtLeast } from "./series.ts";

export const GROUP_PROBES = ["rtt", "alpha", "fairness"] as const;
export const FLOW_PROBES = ["delivered", "window", "rtt", "alpha", "marks", "retransmitted"] as const;
export type GroupProbe = (typeof GROUP_PROBES)[number];
export type FlowProbe = (typeof FLOW_PROBES)[number];

function columns<Name extends string>(names: readonly Name[]): Record<Name, Column> {
  return Object.fromEntries(names.map((name) => [name, new Column()])) as Record<Name, Column>;
}

export class ProbeSeries {
  readonly time = new Column();
  readonly groups: Record<GroupProbe, Column>[];
  /** Jain's fairness index of all flows. */
  readonly fairness = new Column();
  /** The names of the watched flows, and what was seen of them. */
  names: string[] = [];
  flows: Record<FlowProbe, Column>[] = [];
  private progress: (Progress | null)[] = [];

  constructor(private readonly of: Pick<Group, "name" | "capacity">[]) {
    this.groups = of.map(() => columns(GROUP_PROBES));
  }

  /** What a watched flow has delivered, for its goodput over time. */
  delivered(flow: number): Column | undefined {
    return this.progress[flow]?.column ?? this.flows[flow]?.delivered;
  }

  /** Forgets everything: other flows are watched. */
  watch(names: string[]): void {
    this.truncate(-Infinity);
    this.names = names;
    this.flows = names.map(() => columns(FLOW_PROBES));
    this.progress = names.map((name) => progressOf(this.of.find((group) => name.startsWith(`${group.name}/`))?.capacity));
  }

  append(probes: Probes): void {
    this.time.push(probes.time);
    this.fairness.push(probes.fairness);
    this.groups.forEach((group, i) => GROUP_PROBES.forEach((name) => group[name].push(probes.groups[i]?.[name] ?? [])));
    this.flows.forEach((flow, i) => FLOW_PROBES.forEach((name) => flow[name].push(probes.flows[i]?.[name] ?? [])));
    this.progress.forEach((progress, i) => progress?.append(this.time, this.flows[i]!.delivered));
  }

  /** Forgets what was seen at `from` and later. */
  truncate(from: number): void {
    const length = firstAtLeast(this.time.view(), from);
    this.time.truncate(length);
    this.fairness.truncate(length);
    for (const set of [...this.groups, ...this.flows]) for (const column of Object.values(set)) column.truncate(length);
    this.progress.forEach((progress, i) => progress?.cut(this.time, this.flows[i]!.delivered));
  }
}
