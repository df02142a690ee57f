// Draws lines that have at least one point for each pixel column as upright bars, into an image: to the eye it is the same,
// and a browser without a graphics card is many times faster than with strokes that go up and down in each column.
import uPlot from "uplot";

const linear = uPlot.paths.linear!();
const NONE = { stroke: null, fill: null, clip: null, band: null, gaps: null, flags: 0 } as unknown as uPlot.Series.Paths;

/** Whether a series is drawn as bars. */
function isDense(chart: uPlot, series: number, first: number, last: number): boolean {
  return chart.series[series]!.paths === strokeUnlessDense && last - first >= chart.bbox.width / devicePixelRatio;
}

/** Strokes a series, unless it is dense: `Bars` draws it then. */
export const strokeUnlessDense: uPlot.Series.PathBuilder = (chart, series, first, last) =>
  isDense(chart, series, first, last) ? NONE : linear(chart, series, first, last);

/** The dense series of a chart. */
export class Bars {
  private image: ImageData | null = null;
  private readonly canvas = document.createElement("canvas");

  /** Draws them below what is drawn next. */
  draw(chart: uPlot): void {
    const [first, last] = chart.series[0]!.idxs ?? [0, -1];
    const dense = chart.series.flatMap((series, index) => index > 0 && series.show && isDense(chart, index, first!, last!) ? [index] : []);
    if (dense.length === 0) return;
    const [left, top, width, height] = [chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height].map(Math.round) as [number, number, number, number];
    const pixels = this.clear(width, height);
    const place = { width, height, columns: columnsOf(chart, first!, last!), row: rowOf(chart) };
    for (const index of dense) {
      const stroke = chart.series[index]!.stroke;
      const colour = rgba(typeof stroke === "function" ? String(stroke(chart, index)) : String(stroke));
      fill(pixels, place, chart, index, first!, last!, colour);
    }
    this.canvas.getContext("2d")!.putImageData(this.image!, 0, 0);
    chart.ctx.drawImage(this.canvas, left, top);
  }

  private clear(width: number, height: number): Uint32Array {
    if (this.image?.width === width && this.image.height === height) {
      const pixels = new Uint32Array(this.image.data.buffer);
      pixels.fill(0);
      return pixels;
    }
    this.image = new ImageData(width, height);
    [this.canvas.width, this.canvas.height] = [width, height];
    return new Uint32Array(this.image.data.buffer);
  }
}

/** Where points are in the image. */
interface Place {
  width: number;
  height: number;
  /** The pixel column of each point from the first shown one on. */
  columns: Int32Array;
  row(value: number): number;
}

function columnsOf(chart: uPlot, first: number, last: number): Int32Array {
  const [x, left] = [chart.data[0], chart.bbox.left];
  return Int32Array.from({ length: last - first + 1 }, (_, i) => Math.round(chart.valToPos(x[first + i]!, "x", true) - left));
}

function rowOf(chart: uPlot): (value: number) => number {
  const { min, max, distr } = chart.scales["y"]!;
  const { top, height } = chart.bbox;
  // An even scale needs no calls.
  if ((distr ?? 1) === 1 && min != null && max != null) return (value) => Math.round(((max - value) / (max - min)) * height);
  return (value) => Math.round(chart.valToPos(value, "y", true) - top);
}

function fill(pixels: Uint32Array, { width, height, columns, row: rowFor }: Place, chart: uPlot, series: number, first: number, last: number, colour: number): void {
  const y = chart.data[series]!;
  const thickness = Math.max(1, Math.round((chart.series[series]!.width ?? 1) * devicePixelRatio));
  // The present column and its ends, and those of the one before it, if they are joined.
  let column = NaN;
  let [high, low] = [Infinity, -Infinity];
  let [highBefore, lowBefore] = [NaN, NaN];
  const finish = (next: number): void => {
    if (low < high) return;
    // A bar reaches the one before it.
    const top = Math.max(Math.min(high, Number.isNaN(lowBefore) ? high : lowBefore), 0);
    const bottom = Math.min(Math.max(low, Number.isNaN(highBefore) ? low : highBefore, top + thickness - 1), height - 1);
    const right = Math.min(Math.max(next, column + 1), width);
    for (let row = top; row <= bottom; row++) for (let at = Math.max(column, 0); at < right; at++) pixels[row * width + at] = colour;
    [highBefore, lowBefore] = [high, low];
    [high, low] = [Infinity, -Infinity];
  };
  for (let i = first; i <= last; i++) {
    const value = y[i];
    if (value === undefined) continue;
    const at = columns[i - first]!;
    if (at !== column) {
      finish(at);
      column = at;
    }
    if (value === null) {
      finish(at);
      [highBefore, lowBefore] = [NaN, NaN];
      continue;
    }
    const row = rowFor(value);
    high = Math.min(high, row);
    low = Math.max(low, row);
  }
  finish(column + 1);
}

const known = new Map<string, number>();
const one = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

/** A colour of the style sheet as a pixel. */
function rgba(colour: string): number {
  let pixel = known.get(colour);
  if (pixel === undefined && one) {
    one.clearRect(0, 0, 1, 1);
    one.fillStyle = colour;
    one.fillRect(0, 0, 1, 1);
    pixel = new Uint32Array(one.getImageData(0, 0, 1, 1).data.buffer)[0]!;
    known.set(colour, pixel);
  }
  return pixel ?? 0;
}
