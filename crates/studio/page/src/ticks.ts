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

/** At most about `count` marks of a logarithmic axis: at 1, 2 and 5 times the powers of ten, or at powers alone. */
export function logTicks(from: number, to: number, count: number): number[] {
  if (!(from > 0) || !(to > from)) return [from];
  const powers: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) powers.push(power);
  const all = (digits: number[]): number[] => powers
    .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
    .filter((value) => value >= from * (1 - 1e-9) && value <= to * (1 + 1e-9));
  const fine = all([1, 2, 5]);
  if (fine.length <= count) return fine;
  const coarse = all([1]);
  const every = Math.ceil(coarse.length / Math.max(count, 1));
  return coarse.length > 0 ? coarse.filter((_, index) => index % every === 0) : fine.slice(0, count);
}
