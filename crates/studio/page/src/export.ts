// Saves a plot as PNG, SVG or CSV.
import { labels } from "./axis.ts";
import { download, element } from "./element.ts";
import { colour, lineColour, lineDash, markerShape } from "./palette.ts";
import type { Plot } from "./plot.ts";
import { firstAtLeast } from "./series.ts";
import { svg } from "./svg.ts";

export function exportButtons(plot: Plot): HTMLElement {
  const button = (format: string, save: () => void): HTMLElement =>
    element("button", { type: "button", class: "small", "aria-label": `Save ${plot.spec.title} as ${format}`, click: save }, format);
  const name = (extension: string): string => `${plot.board.extent.stem}-${plot.spec.id}.${extension}`;
  return element("div", { class: "exports" },
    button("PNG", () => savePng(plot, name("png"))),
    button("SVG", () => download(name("svg"), svg(plot), "image/svg+xml")),
    button("CSV", () => download(name("csv"), csv(plot), "text/csv")));
}

function savePng(plot: Plot, name: string): void {
  const source = plot.canvas;
  if (!source) return;
  const ratio = devicePixelRatio;
  const rows = plot.shown.length;
  const head = 30 * ratio;
  const canvas = element("canvas", { width: source.width, height: source.height + head + rows * 16 * ratio + 8 * ratio });
  const ctx = canvas.getContext("2d")!;
  ctx.fillStyle = colour("ground");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(source, 0, head);
  ctx.fillStyle = colour("text");
  ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  ctx.fillText(plot.spec.title, 12 * ratio, 20 * ratio);
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  plot.shown.forEach((line, row) => {
    const y = source.height + head + (row * 16 + 12) * ratio;
    ctx.strokeStyle = lineColour(line);
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash(lineDash(line, plot.hasTwoRuns).map((length) => length * ratio));
    ctx.beginPath();
    ctx.moveTo(12 * ratio, y - 4 * ratio);
    ctx.lineTo(42 * ratio, y - 4 * ratio);
    ctx.stroke();
    ctx.setLineDash([]);
    const marker = new Path2D();
    marker.addPath(new Path2D(markerShape(line)), new DOMMatrix([3.6 * ratio, 0, 0, 3.6 * ratio, 27 * ratio, y - 4 * ratio]));
    ctx.stroke(marker);
    ctx.fillText(line.label, 50 * ratio, y);
  });
  canvas.toBlob((blob) => blob && download(name, blob));
}

/** Every sample of the lines in the shown range; an empty field where a line has no sample there. */
export function csv(plot: Plot): string {
  const { axis, range: { from, to } } = plot.board;
  const unit = plot.spec.unit + plot.spec.per;
  const columns = plot.shown.flatMap((line) => [
    { line, values: line.values, name: `${line.label} (${!line.counter ? unit : plot.spec.unit === "bits/s" ? "cumulated bits" : "cumulated"})` },
    ...(line.band ? [
      { line, values: line.band.low, name: `${line.label}, least (${unit})` },
      { line, values: line.band.high, name: `${line.label}, greatest (${unit})` },
    ] : []),
  ]);
  const rows = new Map<number, string[]>();
  columns.forEach(({ line, values }, index) => {
    const times = line.time.view();
    for (let i = firstAtLeast(times, from); i < times.length && times[i]! <= to; i++) {
      const row = rows.get(times[i]!) ?? new Array<string>(columns.length).fill("");
      const value = values.at(i);
      if (!Number.isNaN(value)) row[index] = String(value * (values === line.values ? line.factor ?? 1 : 1));
      rows.set(times[i]!, row);
    }
  });
  const field = (text: string): string => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const first = axis.unit === "seconds" ? `${axis.name} (s)` : axis.unit === "count" ? axis.name : `${axis.name} (${axis.unit})`;
  const marked = (x: number): string => field(axis.marks ? labels(axis, [x])[0]! : String(x));
  const head = [field(first), ...columns.map(({ name }) => field(name))].join(",");
  const body = [...rows].sort(([a], [b]) => a - b).map(([x, row]) => [marked(x), ...row].join(","));
  return [head, ...body, ""].join("\n");
}
