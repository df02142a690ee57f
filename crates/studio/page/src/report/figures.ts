// The figures of a report as plots: those of one axis zoom together, and those of ports, groups or flows show the chosen ones.
import { Board, type Extent } from "../board.ts";
import { element } from "../element.ts";
import type { Level, Line, PlotSpec } from "../plot.ts";
import { MOST, Selection, type Changing } from "../selection.ts";
import { Columns, type Entries, type FigureData, type Kind, type LineData, type ReportData, type SectionData } from "./data.ts";

/** So many of the worst are shown when there are more than can be told apart at a glance. */
const SHOWN = 8;

/** Tells plots and lists that another choice was made. */
class Choices implements Changing {
  private readonly listeners: (() => void)[] = [];

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}

export class Figures {
  readonly boards: Board[];
  readonly selections: Record<Kind, Selection>;
  private readonly choices = new Choices();
  private readonly columns: Columns;
  private readonly lines = new Map<LineData, Pick<Line, "time" | "values" | "counter" | "band">>();
  private readonly ids = new Map<string, number>();
  private readonly hasTwoRuns: boolean;

  constructor(readonly report: ReportData, stem: string) {
    this.columns = new Columns(report);
    this.selections = {
      ports: new Selection(this.choices, choice(report.ports, true)),
      groups: new Selection(this.choices, choice(report.groups, false)),
      flows: new Selection(this.choices, choice(report.flows, false)),
    };
    this.hasTwoRuns = report.sections.some(({ figures }) => figures.some(({ lines }) => lines.some(({ run }) => run === "b")));
    this.boards = report.axes.map((axis) => {
      const extent: Extent = {
        start: axis.from, now: axis.to, duration: axis.to, stem, onChange: (listener) => this.choices.onChange(listener),
      };
      return new Board(extent, axis);
    });
    // The ranking listens to changes.
    this.choices.changed();
  }

  /** Adds the plots of a section. */
  add(section: SectionData, host: HTMLElement): void {
    for (const figure of section.figures) {
      const cell = element("div", { class: "figure" });
      host.append(cell);
      const plot = this.boards[figure.axis]!.add(cell, this.spec(section, figure));
      if (figure.caption !== "") cell.append(element("p", { class: "aside" }, figure.caption));
      plot.refresh();
    }
  }

  private spec(section: SectionData, figure: FigureData): PlotSpec {
    const isOverTime = this.boards[figure.axis]!.axis.name === "time";
    const known = new Map<number | string, LineData[]>();
    for (const line of figure.lines) known.set(line.of, [...(known.get(line.of) ?? []), line]);
    // Lines that are not chosen among keep their order.
    const shown = (): (number | string)[] => figure.of ? this.selections[figure.of].chosen : [...known.keys()];
    return {
      id: this.id(figure.id), title: figure.title, unit: figure.unit, per: figure.per,
      empty: figure.of ? `None of the chosen ${figure.of} has a line here.` : "There is nothing to show.",
      lines: () => shown().flatMap((of, index) => (known.get(of) ?? []).map((line) => this.line(figure, line, index))),
      levels: () => shown().flatMap((of) => figure.levels.filter((level) => level.of === of).map((level): Level => ({
        label: level.label, run: "a", value: level.value, from: level.from, until: level.until ?? Infinity,
      }))),
      moments: () => isOverTime ? section.changes : [],
      spans: () => isOverTime && section.warmUp > 0 ? [{ label: "warm-up", from: 0, to: section.warmUp }] : [],
      logarithmic: figure.logarithmic, top: figure.top, points: figure.points,
      reach: this.report.sections.length > 1 ? figure.reach : 0,
    };
  }

  private line(figure: FigureData, data: LineData, index: number): Line {
    let columns = this.lines.get(data);
    if (!columns) {
      const values = (numbers: LineData["y"]) => this.columns.of(numbers, data.x);
      columns = {
        time: this.columns.x(data.x), values: values(data.y), counter: false,
        band: data.low !== undefined && data.high !== undefined ? { low: values(data.low), high: values(data.high) } : undefined,
      };
      this.lines.set(data, columns);
    }
    const name = typeof data.of === "string" ? data.of : this.report[figure.of!].names[data.of]!;
    return {
      key: `${data.of} ${data.run}`, label: this.hasTwoRuns ? `${name} (${data.run.toUpperCase()})` : name,
      index, run: data.run, ...columns,
    };
  }

  // Several figures of a report may have the same name.
  private id(name: string): string {
    const count = (this.ids.get(name) ?? 0) + 1;
    this.ids.set(name, count);
    return count === 1 ? name : `${name}-${count}`;
  }
}

function choice({ names, measures }: Entries, largestFirst: boolean) {
  return { names, shown: names.length > MOST ? SHOWN : names.length, measures: () => measures, largestFirst };
}
