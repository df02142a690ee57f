// Rules that are tried on a part of the connections: their share, and their figures beside those of the others.
import { element } from "../element.ts";
import type { Line, PlotSpec } from "../plot.ts";
import { plain, readable } from "../quantity.ts";
import { figureKind, figureTable, type Estimate } from "./interval.ts";
import { count } from "./table.ts";
import type { Page, Part } from "./view.ts";

interface Connections {
  connections: number;
  completed: number;
  figures: Record<string, Estimate>;
}

interface Period {
  seconds?: number;
  treated: Connections;
  control: Connections;
  differences: Record<string, Estimate>;
}

export interface Canary {
  line: number;
  share: number;
  is_compared: boolean;
  undone?: { ms_ago: number; reason: string };
  recent: Period;
  total: Period;
}

/** The figures that have plots of their own. */
const PLOTTED = ["rtt", "retransmits", "delivery_rate", "completion_p99"];

export function canaryParts(page: Page): { plots: PlotSpec[]; parts: Part[]; take(canaries: Canary[]): void } {
  const tracks = page.tracks();
  let last: Canary[] = [];
  const take = (canaries: Canary[]): void => {
    last = canaries;
    for (const { line, share, undone, recent } of canaries) {
      page.history.watch(`share ${line}`, String(share), `rule at line ${line} is tried on ${percent(share)}`);
      page.history.watch(`undone ${line}`, String(undone !== undefined), undone ? `a guard takes the rule at line ${line} back: ${undone.reason}` : `the rule at line ${line} is in force again`);
      for (const [side, { figures }] of [["with", recent.treated], ["without", recent.control]] as const) {
        const values: Record<string, number | null> = {};
        for (const [name, { value, low, high }] of Object.entries(figures)) {
          values[name] = value;
          values[`${name} low`] = low ?? null;
          values[`${name} high`] = high ?? null;
        }
        tracks.add(`${line} ${side}`, values);
      }
    }
  };
  const lines = (figure: string) => (): Line[] => last.flatMap(({ line }, index) => (["with", "without"] as const).flatMap((side): Line[] => {
    const track = tracks.get(`${line} ${side}`);
    const values = track?.get(figure);
    return !track || !values || values.isEmpty ? [] : [{
      key: `${line} ${side}`, label: `rule at line ${line}, ${side} it`, index: 2 * index + (side === "with" ? 0 : 1), run: side === "with" ? "a" : "b",
      time: track.time, values, counter: false, band: { low: track.get(`${figure} low`), high: track.get(`${figure} high`) },
    }];
  }));
  const plots = PLOTTED.map((figure) => {
    const { title, unit } = figureKind(figure);
    return page.plot(`canary-${figure}`, `${title} with and without what is tried`, unit, lines(figure));
  });
  return { plots, take, parts: [{ id: "canaries", title: "Rules that are tried", content: () => last.length === 0 ? [element("p", { class: "aside" }, "No rule is tried on a part of the connections.")] : last.map(shown) }] };
}

function shown(canary: Canary): HTMLElement {
  const { line, share, undone, recent, total } = canary;
  const stage = undone
    ? element("p", { class: "alarm" }, `A guard has taken it back ${readable(Math.round(undone.ms_ago / 1000), "seconds")} ago: ${undone.reason}.`)
    : element("p", {}, `In force for ${percent(share)} of its connections${canary.is_compared ? ", compared with the others" : ""}.`);
  const figures = (period: Period): Record<string, { treated?: Estimate; control?: Estimate; difference?: Estimate }> =>
    Object.fromEntries([...new Set([...Object.keys(period.treated.figures), ...Object.keys(period.control.figures)])].map((name) =>
      [name, { treated: period.treated.figures[name], control: period.control.figures[name], difference: period.differences[name] }]));
  const about = (period: Period): string => `${count(period.treated.connections)} connections with it, ${count(period.control.connections)} without it; 95 % intervals.`;
  return element("div", { class: "canary" },
    element("h3", {}, `Rule at line ${line}: ${percent(share)}`), stage,
    element("p", { class: "aside" }, `The last ${recent.seconds ?? 30} s: ${about(recent)}`), figureTable(`Rule at line ${line}, last seconds`, figures(recent)),
    element("p", { class: "aside" }, `Since it came into force: ${about(total)}`), figureTable(`Rule at line ${line}, in all`, figures(total)));
}

const percent = (share: number): string => `${plain(100 * share, 3)} %`;
