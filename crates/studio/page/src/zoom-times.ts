// How long zoom and pan steps take, for `weirZoomTimes()` in the browser's console.

/** Milliseconds of a set of steps. */
export interface Quantiles {
  p50: number;
  p95: number;
}

/** The last steps: `script` until all plots are drawn by script, `frame` until the browser's next frame is out. */
export interface ZoomReport {
  steps: number;
  script: Quantiles;
  frame: Quantiles;
}

const KEPT = 200;

export class ZoomTimes {
  private script: number[] = [];
  private frame: number[] = [];

  /** Begins a step; call the answer when the plots have their data. */
  begin(): () => void {
    const start = performance.now();
    // uPlot draws in a microtask that was queued before this one.
    return () => queueMicrotask(() => {
      keep(this.script, performance.now() - start);
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => keep(this.frame, performance.now() - start);
        port2.postMessage(null);
      });
    });
  }

  report(): ZoomReport {
    return { steps: this.script.length, script: quantiles(this.script), frame: quantiles(this.frame) };
  }
}

function keep(times: number[], time: number): void {
  times.push(time);
  if (times.length > KEPT) times.shift();
}

function quantiles(times: number[]): Quantiles {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (fraction: number): number => sorted[Math.max(Math.ceil(fraction * sorted.length) - 1, 0)] ?? NaN;
  return { p50: at(0.5), p95: at(0.95) };
}
