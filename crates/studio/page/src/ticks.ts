// Round values for an axis.

/** About `count` multiples of 1, 2 or 5 times a power of ten in [from, to]. */
export function ticks(from: number, to: number, count: number): number[] {
  if (!(to > from)) return [from];
  const least = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= least * 0.999) ?? 10);
  const found: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12); i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}
