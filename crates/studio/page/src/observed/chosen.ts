// Which flows the plots show: the first ones of the table, until somebody chooses.
import { MOST } from "../selection.ts";

/** So many are shown when nobody has chosen. */
const SHOWN = 5;

export class Chosen {
  private manual: string[] | null = null;
  private automatic: string[] = [];

  /** The order of the table; those that are shown stay, as long as they are there. */
  rank(names: string[]): void {
    const there = new Set(names);
    const kept = this.automatic.filter((name) => there.has(name));
    const rest = names.filter((name) => !kept.includes(name));
    this.automatic = [...kept, ...rest].slice(0, SHOWN);
  }

  get names(): string[] {
    return this.manual ?? this.automatic;
  }

  get isFull(): boolean {
    return this.names.length >= MOST;
  }

  has(name: string): boolean {
    return this.names.includes(name);
  }

  toggle(name: string): void {
    this.manual = this.has(name) ? this.names.filter((other) => other !== name) : [...this.names, name];
  }

  release(): void {
    this.manual = null;
  }
}
