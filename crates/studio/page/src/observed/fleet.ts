// The policy of a fleet: which version is everywhere, and the stages of the one on its way.
import { element } from "../element.ts";
import { readable } from "../quantity.ts";
import { figureTable, type Estimate } from "./interval.ts";
import { count, table } from "./table.ts";
import type { Page } from "./view.ts";

export interface Fleet {
  fleet: string;
  controller: string;
  decision: number;
  version: number;
  attached: number;
  known: number;
  rollout: Rollout | null;
  versions: { version: number | null; attached: number; known: number }[];
  hosts: { name: string; labels: Record<string, string>; attached: boolean; running: number | null; assigned: number; since: string; problem: string | null }[];
}

interface Rollout {
  version: number;
  stage: number;
  stages: string;
  wait_s: number;
  guards: string[];
  taken: number;
  pending: number;
  refusals: number;
  waited_s: number | null;
  figures: Record<string, { treated: Estimate | null; control: Estimate | null }>;
}

const named = (version: number | null): string => version === null ? "–" : version === 0 ? "no policy" : `version ${version}`;

export function fleetPart(page: Page): { take(fleet: Fleet | null, problem: string | null): void; content(): HTMLElement[] } {
  let last: Fleet | null = null;
  let problem: string | null = null;
  return {
    take: (fleet, reason) => {
      [last, problem] = [fleet, reason];
      if (!fleet) return;
      const { history } = page;
      history.watch("stable", String(fleet.version), `${named(fleet.version)} is everywhere`);
      history.watch("rollout", fleet.rollout ? `${fleet.rollout.version} ${fleet.rollout.stage}` : "", fleet.rollout
        ? `version ${fleet.rollout.version}: stage ${fleet.rollout.stage}` : "no version is on its way");
    },
    content: () => {
      if (!last) return [element("p", { class: "aside" }, problem === null ? "Nothing is known of a policy." : `Nothing is known of a policy: ${problem}.`)];
      return [
        element("p", {}, `${named(last.version)[0]!.toUpperCase()}${named(last.version).slice(1)} everywhere; ${count(last.attached)} hosts attached, ${count(last.known)} known.`),
        ...(last.rollout ? stages(last.rollout) : [element("p", { class: "aside" }, "No version is on its way.")]),
        ...(last.hosts.length > 0 ? [hosts(last)] : []),
      ];
    },
  };
}

function stages(rollout: Rollout): HTMLElement[] {
  const steps = rollout.stages.split(", then ").map((stage, index) => {
    const place = index + 1 < rollout.stage ? "done" : index + 1 === rollout.stage ? "present" : "coming";
    return element("li", { class: place, ...(place === "present" ? { "aria-current": "step" } : {}) }, stage);
  });
  const wait = rollout.waited_s === null
    ? `waits for ${readable(rollout.wait_s, "seconds")} when all of the stage have it`
    : `${readable(rollout.waited_s, "seconds")} of ${readable(rollout.wait_s, "seconds")} waited`;
  const has = `${count(rollout.taken)} have it, ${count(rollout.pending)} to come, ${count(rollout.refusals)} refuse it`;
  return [
    element("p", {}, `Version ${rollout.version} is on its way: ${has}; ${wait}.`),
    element("ol", { class: "stages", "aria-label": "Stages" }, ...steps),
    ...(rollout.guards.length > 0 ? [element("p", { class: "aside" }, `It goes back if ${rollout.guards.join(", or if ")}.`)] : []),
    figureTable("Figures of hosts", rollout.figures),
  ];
}

function hosts(fleet: Fleet): HTMLElement {
  return table("Hosts", ["Host", "Labels", "Runs", "Gets", "Attached", "Since", "Problem"], fleet.hosts.map((host) => [
    host.name, Object.entries(host.labels).map(([key, value]) => `${key}=${value}`).sort().join(" "), named(host.running), named(host.assigned),
    { text: host.attached ? "yes" : "no", alarm: !host.attached }, host.since, { text: host.problem ?? "", alarm: host.problem !== null },
  ]), 2);
}
