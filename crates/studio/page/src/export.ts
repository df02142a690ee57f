// Saves a plot as PNG, SVG or CSV.
import { download, element } from "./element.ts";
import { colour, lineColour, lineDash } from "./palette.ts";
import { timeLabels, type Line, type Plot } from "./plot.ts";
import { plain } from "./quantity.ts";
import { firstAtLeast } from "./series.ts";
import { ticks } from "./ticks.ts";

export function exportButtons(plot: Plot): HTMLElement {
  const button = (format: string, save: () => void): HTMLElement =>
    element("button", { type: "button", class: "small", "aria-label": `Save ${plot.spec.title} as ${format}`, click: save }, format);
  const name = (extension: string): string => `${plot.board.model.stem}-${plot.spec.id}.${extension}`;
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
    ctx.strokeStyle = lineColour(line.index, line.run);
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash(lineDash(line.index, line.run).map((length) => length * ratio));
    ctx.beginPath();
    ctx.moveTo(12 * ratio, y - 4 * ratio);
    ctx.lineTo(36 * ratio, y - 4 * ratio);
    ctx.stroke();
    ctx.fillText(line.label, 42 * ratio, y);
  });
  canvas.toBlob((blob) => blob && download(name, blob));
}

/** Every sample of the lines in the shown range; an empty field where a run has no sample at a time. */
export function csv(plot: Plot): string {
  const { from, to } = plot.board.range;
  const rows = new Map<number, string[]>();
  const lines = plot.shown;
  lines.forEach((line, index) => {
    const times = line.time.view();
    for (let i = firstAtLeast(times, from); i < times.length && times[i]! <= to; i++) {
      const row = rows.get(times[i]!) ?? new Array<string>(lines.length).fill("");
      const value = line.values.at(i);
      if (!Number.isNaN(value)) row[index] = String(value * (line.factor ?? 1));
      rows.set(times[i]!, row);
    }
  });
  const unit = (line: Line): string =>
    !line.counter ? plot.spec.unit : plot.spec.unit === "bits/s" ? "cumulated bits" : "cumulated";
  const field = (text: string): string => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const head = ["time (s)", ...lines.map((line) => field(`${line.label} (${unit(line)})`))].join(",");
  const body = [...rows].sort(([a], [b]) => a - b).map(([time, row]) => [time, ...row].join(","));
  return [head, ...body, ""].join("\n");
}

const MARGIN = { left: 64, right: 16, top: 34, bottom: 34 };
const AREA = { width: 820, height: 260 };

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/** The plot as it is shown, as a drawing that needs no style sheet. */
export function svg(plot: Plot): string {
  const lines = plot.shown;
  const { from, to } = plot.board.range;
  const [x, ...ys] = plot.sampled(lines, AREA.width);
  let greatest = 0;
  for (const y of ys) for (const value of y) if (value != null && value > greatest) greatest = value;
  const top = greatest > 0 ? greatest * 1.05 : 1;
  const { factor, name } = plot.scale(top);
  const px = (time: number): string => (MARGIN.left + ((time - from) / (to - from)) * AREA.width).toFixed(1);
  const py = (value: number): string => (MARGIN.top + (1 - value / top) * AREA.height).toFixed(1);
  const height = MARGIN.top + AREA.height + MARGIN.bottom + 18 * lines.length;
  const width = MARGIN.left + AREA.width + MARGIN.right;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="${colour("ground")}"/>`,
    `<text x="${MARGIN.left}" y="20" font-size="15" font-weight="600" fill="${colour("text")}">${escaped(`${plot.spec.title} (${name})`)}</text>`,
    `<clipPath id="area"><rect x="${MARGIN.left}" y="${MARGIN.top}" width="${AREA.width}" height="${AREA.height}"/></clipPath>`,
  ];
  for (const value of ticks(0, top, 5)) {
    parts.push(`<path d="M${MARGIN.left} ${py(value)}h${AREA.width}" stroke="${colour("rule")}"/>`,
      `<text x="${MARGIN.left - 6}" y="${Number(py(value)) + 4}" text-anchor="end" fill="${colour("quiet")}">${plain(value / factor)}</text>`);
  }
  const times = ticks(from, to, 8);
  timeLabels(times).forEach((label, index) =>
    parts.push(`<text x="${px(times[index]!)}" y="${MARGIN.top + AREA.height + 18}" text-anchor="middle" fill="${colour("quiet")}">${label}</text>`));
  for (const level of plot.spec.levels()) {
    const [start, end] = [Math.max(level.from, from), Math.min(level.until, to)];
    if (level.value > top || end <= start) continue;
    parts.push(`<path d="M${px(start)} ${py(level.value)}H${px(end)}" stroke="${colour("level")}" stroke-dasharray="6 4"/>`);
  }
  lines.forEach((line, index) => parts.push(path(line, x, ys[index]!, px, py), legend(line, index)));
  return [...parts, "</svg>", ""].join("\n");
}

function stroke(line: Line): string {
  const dash = lineDash(line.index, line.run);
  return `stroke="${lineColour(line.index, line.run)}"${dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : ""}`;
}

function path(line: Line, x: number[], y: (number | null | undefined)[], px: (time: number) => string, py: (value: number) => string): string {
  let data = "";
  let open = false;
  x.forEach((time, i) => {
    const value = y[i];
    if (value === null) open = false;
    if (value == null) return;
    data += `${open ? "L" : "M"}${px(time)} ${py(value)}`;
    open = true;
  });
  return `<path d="${data}" fill="none" stroke-width="1.5" clip-path="url(#area)" ${stroke(line)}/>`;
}

function legend(line: Line, index: number): string {
  const y = MARGIN.top + AREA.height + MARGIN.bottom + 18 * index;
  return `<path d="M${MARGIN.left} ${y}h26" stroke-width="2" ${stroke(line)}/>` +
    `<text x="${MARGIN.left + 34}" y="${y + 4}" fill="${colour("text")}">${escaped(line.label)}</text>`;
}
