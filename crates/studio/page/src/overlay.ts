// What a plot draws beside uPlot's lines: shaded spans and bands below them, markers, changes and levels above.
import type uPlot from "uplot";
import { colour, lineColour, markerShape } from "./palette.ts";
import type { Level, Line, Moment, Span } from "./plot.ts";

/** Pixels between two markers on one line, at least. */
const MARKER_PERIOD = 130;
/** Pixels between markers of different lines, at least: lines that coincide show each other's. */
const MARKER_SPACING = 14;
const MARKER_RADIUS = 3.4;

/** Calls `draw` with everything outside of the plot's area cut off. */
export function clipped(chart: uPlot, draw: () => void): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}

/** Shades spans of the axis. */
export function drawSpans(chart: uPlot, spans: Span[]): void {
  const { ctx, bbox } = chart;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  for (const span of spans) {
    const [start, end] = [chart.valToPos(span.from, "x", true), chart.valToPos(span.to, "x", true)];
    ctx.fillStyle = colour("shade");
    ctx.fillRect(start, bbox.top, end - start, bbox.height);
    ctx.fillStyle = colour("quiet");
    ctx.fillText(span.label, Math.max(start, bbox.left) + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
}

/** Shades between the least and the greatest values of a line. */
export function drawBand(chart: uPlot, line: Line): void {
  if (!line.band) return;
  const { ctx } = chart;
  const outline = bandOutline(line, (x) => chart.valToPos(x, "x", true), (y) => chart.valToPos(y, "y", true));
  ctx.globalAlpha = 0.2;
  ctx.fillStyle = lineColour(line);
  ctx.fill(new Path2D(outline));
  ctx.globalAlpha = 1;
}

/** The outline of a line's band as path data: its greatest values there, its least ones back. */
export function bandOutline(line: Line, px: (x: number) => number, py: (y: number) => number): string {
  if (!line.band) return "";
  const times = line.time.view();
  const [low, high] = [line.band.low.view(), line.band.high.view()];
  const there: string[] = [];
  const back: string[] = [];
  for (let i = 0; i < times.length; i++) {
    if (Number.isNaN(low[i]!) || Number.isNaN(high[i]!)) continue;
    const x = px(times[i]!).toFixed(1);
    there.push(`${x} ${py(high[i]!).toFixed(1)}`);
    back.push(`${x} ${py(low[i]!).toFixed(1)}`);
  }
  return there.length === 0 ? "" : `M${[...there, ...back.reverse()].join("L")}Z`;
}

/** Draws markers of the lines that are shown: at each point, or now and then. */
export function drawMarkers(chart: uPlot, lines: readonly Line[], isShown: (line: Line) => boolean, atPoints: boolean): void {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  ctx.setLineDash([]);
  ctx.lineWidth = 1.4 * ratio;
  const shown = lines.flatMap((line, index) => isShown(line) ? [{ line, data: chart.data[index + 1]! }] : []);
  shown.forEach(({ line, data }, place) => {
    const shape = new Path2D(markerShape(line));
    ctx.strokeStyle = ctx.fillStyle = lineColour(line);
    const places = atPoints ? everyPoint(chart, data) : nowAndThen(chart, data, place, shown.length);
    for (const [x, y] of places) {
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const marker = new Path2D();
      marker.addPath(shape, new DOMMatrix([MARKER_RADIUS * ratio, 0, 0, MARKER_RADIUS * ratio, x, y]));
      // Filled markers would hide those of lines that coincide at the same points.
      if (!atPoints && line.run === "a") ctx.fill(marker);
      ctx.stroke(marker);
    }
  });
}

type Points = ArrayLike<number | null | undefined>;

function everyPoint(chart: uPlot, data: Points): [number, number][] {
  return Array.from(chart.data[0]).flatMap((x, i): [number, number][] => {
    const y = data[i];
    return y == null ? [] : [[chart.valToPos(x, "x", true), chart.valToPos(y, "y", true)]];
  });
}

// Lines of one plot have their markers at places of their own.
function nowAndThen(chart: uPlot, data: Points, place: number, count: number): [number, number][] {
  const { bbox } = chart;
  const spacing = Math.max(MARKER_SPACING, MARKER_PERIOD / count) * devicePixelRatio;
  const places: [number, number][] = [];
  for (let x = bbox.left + (place + 0.5) * spacing; x < bbox.left + bbox.width; x += count * spacing) {
    const y = valueAt(chart.data[0], data, chart.posToVal(x, "x", true));
    if (y !== null) places.push([x, chart.valToPos(y, "y", true)]);
  }
  return places;
}

/** The value of a line at `x`, between the points beside it; null where there is none. */
export function valueAt(xs: ArrayLike<number>, ys: Points, x: number): number | null {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  let after = low;
  while (after < xs.length && ys[after] === undefined) after++;
  let before = low - 1;
  while (before >= 0 && ys[before] === undefined) before--;
  if (before < 0 || after >= xs.length) return null;
  const [y0, y1] = [ys[before], ys[after]];
  if (y0 == null || y1 == null) return null;
  const [x0, x1] = [xs[before]!, xs[after]!];
  return x1 > x0 ? y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) : y1;
}

/** Draws upright lines where something was changed. */
export function drawMoments(chart: uPlot, moments: Moment[]): void {
  const { ctx, bbox } = chart;
  ctx.lineWidth = devicePixelRatio;
  ctx.strokeStyle = colour("quiet");
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at } of moments) {
    const x = chart.valToPos(at, "x", true);
    stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
  }
}

/** Draws levels as dashed lines; `formatted` writes their values. */
export function drawLevels(chart: uPlot, levels: Level[], formatted: (value: number) => string): void {
  const { ctx, bbox } = chart;
  const labelled = new Set<string>();
  ctx.lineWidth = devicePixelRatio;
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  for (const level of levels) {
    ctx.strokeStyle = ctx.fillStyle = colour("level");
    ctx.setLineDash(level.run === "a" ? [6 * devicePixelRatio, 4 * devicePixelRatio] : [2 * devicePixelRatio, 3 * devicePixelRatio]);
    const start = Math.max(chart.valToPos(level.from, "x", true), bbox.left);
    const right = bbox.left + bbox.width;
    const end = level.until === Infinity ? right : chart.valToPos(level.until, "x", true);
    const y = chart.valToPos(level.value, "y", true);
    if (end <= bbox.left || start >= right || y < bbox.top) continue;
    stroke(ctx, start, y, end, y);
    const text = `${level.label} ${formatted(level.value)}`;
    if (end < right || labelled.has(text)) continue;
    labelled.add(text);
    // A rim of the ground keeps the label readable above lines.
    ctx.setLineDash([]);
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = colour("ground");
    ctx.strokeText(text, right - 4 * devicePixelRatio, y - 4 * devicePixelRatio);
    ctx.lineWidth = devicePixelRatio;
    ctx.fillText(text, right - 4 * devicePixelRatio, y - 4 * devicePixelRatio);
  }
}

function stroke(ctx: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}
