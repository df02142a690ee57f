// Completion times of the flows so far: their distribution, and the slowdown by size.
import type { Axis } from "./axis.ts";
import { Board, type Extent } from "./board.ts";
import { element } from "./element.ts";
import type { Line, PlotSpec } from "./plot.ts";
import type { Completions } from "./protocol.ts";
import { Column } from "./series.ts";
import { SIZES, sizeAxis } from "./sizes.ts";

/** At most this many groups are drawn. */
const MOST_GROUPS = 8;
const TIMES: Axis = { name: "completion time", unit: "seconds", logarithmic: true };
const EMPTY = "No flow with a size has completed yet.";
const PERCENTILES = [["p50", "median"], ["p99", "99th percentile"]] as const;

type Point = [x: number, y: number];

export class CompletionPlots {
  private completions: Completions[] = [];
  private readonly boards: Board[];

  constructor(host: HTMLElement) {
    const times = new Board(this.extent(() => this.completions.flatMap(({ cdf }) => cdf.map(([seconds]) => seconds)), 1.1), TIMES);
    const sizes = new Board(this.extent(() => [SIZES[0]!.at, SIZES.at(-1)!.at], 2), sizeAxis());
    times.add(host, this.spec("completions", "Completion times (CDF)", 1, ({ cdf }) => cdf.filter(([seconds]) => seconds > 0)));
    for (const [name, title] of PERCENTILES) {
      sizes.add(host, {
        ...this.spec(`slowdown-${name}`, `Slowdown by size: ${title}`, undefined, ({ slowdown }) =>
          SIZES.flatMap(({ name: size, at }): Point[] => {
            const value = slowdown?.sizes[size]?.[name];
            return value === undefined ? [] : [[at, value]];
          })),
        logarithmic: true, points: true,
      });
    }
    host.append(element("p", { class: "aside" }, "Slowdowns are completion times divided by those on the empty network."));
    this.boards = [times, sizes];
  }

  show(completions: Completions[]): void {
    this.completions = completions.filter(({ cdf }) => cdf.length > 0).slice(0, MOST_GROUPS);
    for (const board of this.boards) board.refresh();
  }

  // From the least to the greatest of some values, and a margin.
  private extent(values: () => number[], margin: number): Extent {
    const end = (choose: (values: number[]) => number): number => {
      const found = values().filter((value) => value > 0);
      return found.length > 0 ? choose(found) : 1;
    };
    return {
      get start() { return end((found) => Math.min(...found)) / margin; },
      get now() { return end((found) => Math.max(...found)) * margin; },
      get duration() { return this.now; },
      stem: "flows",
      onChange: () => {},
    };
  }

  private spec(id: string, title: string, top: number | undefined, points: (of: Completions) => Point[]): PlotSpec {
    return {
      id, title, unit: "ratio", per: "", empty: EMPTY, top,
      lines: () => this.completions.map((of, index): Line => ({
        key: of.group, label: of.group, index, run: "a", counter: false, ...columns(points(of)),
      })).filter(({ time }) => time.length > 0),
      levels: () => [], moments: () => [],
    };
  }
}

function columns(points: Point[]): { time: Column; values: Column } {
  const [time, values] = [new Column(), new Column()];
  time.push(points.map(([x]) => x));
  values.push(points.map(([, y]) => y));
  return { time, values };
}
