// Places the nodes of a network: a chain of switches from left to right with the hosts at its ends,
// everything else in rows by distance from the hosts. Many like hosts of a switch become one node.
import type { Link, Node } from "../protocol.ts";

export interface Place {
  /** The node's name, or what the names of the hosts behind it have in common. */
  name: string;
  kind: "switch" | "host";
  /** The nodes that stand here. */
  members: string[];
  /** The centre. */
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** Where a link leaves a place's box: the point on its side, and the way out. */
export interface Slot extends Point {
  out: Point;
}

/** One direction between two places, with the links of all members. */
export interface Edge {
  from: Place;
  to: Place;
  links: Link[];
  /** One for each measured link, up to `MOST_PORTS`, or one if none is measured. */
  slots: Slot[];
  /** The first slot of the way back. */
  end: Slot;
}

export interface Layout {
  shape: "columns" | "rows";
  places: Place[];
  edges: Edge[];
  width: number;
  height: number;
}

/** The length and breadth of a port's bar; slots are `SLOT` apart. */
export const BAR = { length: 30, breadth: 9 };
const SLOT = 14;
/** At most this many ports of one direction between two places are drawn. */
const MOST_PORTS = 4;
const SWITCH = { width: 74, height: 30 };
const HOST = { width: 92, height: 26 };
/** A box grows with its name up to this width. */
const WIDEST = 150;
const LETTER = 7;

/** More like hosts of a switch than this become one node. */
const MOST_HOSTS = 3;
/** More nodes of one switch than this become one node, like or not. */
const MOST_PLACES = 6;

const natural = new Intl.Collator("en", { numeric: true });

export function layout(nodes: Node[], links: Link[], width: number): Layout {
  const places = collapse(nodes, links);
  const edges = joinLinks(places, links);
  const neighbours = new Map(places.map((place) => [place, new Set<Place>()]));
  for (const edge of edges) {
    neighbours.get(edge.from)!.add(edge.to);
    neighbours.get(edge.to)!.add(edge.from);
  }
  const chain = switchChain(places, neighbours, edges);
  const size = chain ? columns(places, neighbours, edges, chain, width) : rows(places, neighbours, edges, width);
  giveSlots(places, edges, chain === null);
  return { shape: chain ? "columns" : "rows", places, edges, ...size };
}

// Hosts with one and the same switch and like names share a place.
function collapse(nodes: Node[], links: Link[]): Place[] {
  const kinds = new Map(nodes.map((node) => [node.name, node.kind]));
  const around = new Map(nodes.map((node) => [node.name, new Set<string>()]));
  for (const { from, to } of links) {
    around.get(from)?.add(to);
    around.get(to)?.add(from);
  }
  const bySwitch = new Map<string, Map<string, string[]>>();
  const places: Place[] = [];
  const place = (name: string, kind: Place["kind"], members: string[]): void => {
    const { width: least, height } = kind === "switch" ? SWITCH : HOST;
    const letters = name.length + (members.length > 1 ? ` ×${members.length}`.length : 0);
    places.push({ name, kind, members, x: 0, y: 0, width: Math.min(Math.max(least, letters * LETTER + 20), WIDEST), height });
  };
  for (const { name, kind } of nodes) {
    const neighbour = [...around.get(name)!];
    if (kind === "switch" || neighbour.length !== 1 || kinds.get(neighbour[0]!) !== "switch") {
      place(name, kind, [name]);
      continue;
    }
    const likes = bySwitch.get(neighbour[0]!) ?? new Map<string, string[]>();
    bySwitch.set(neighbour[0]!, likes);
    const stem = name.replace(/[-_.]?\d+$/, "") || name;
    likes.set(stem, [...(likes.get(stem) ?? []), name]);
  }
  for (const likes of bySwitch.values()) {
    const count = [...likes.values()].reduce((sum, names) => sum + (names.length > MOST_HOSTS ? 1 : names.length), 0);
    if (count > MOST_PLACES) {
      place("hosts", "host", [...likes.values()].flat());
      continue;
    }
    for (const [stem, names] of likes) {
      if (names.length > MOST_HOSTS) place(stem, "host", names);
      else for (const name of names) place(name, "host", [name]);
    }
  }
  return places;
}

const NOWHERE: Slot = { x: 0, y: 0, out: { x: 0, y: 0 } };

function joinLinks(places: Place[], links: Link[]): Edge[] {
  const home = new Map(places.flatMap((place) => place.members.map((name) => [name, place] as const)));
  const edges = new Map<string, Edge>();
  for (const link of links) {
    const from = home.get(link.from);
    const to = home.get(link.to);
    if (!from || !to || from === to) continue;
    const key = `${places.indexOf(from)} ${places.indexOf(to)}`;
    const edge = edges.get(key) ?? { from, to, links: [], slots: [], end: NOWHERE };
    edge.links.push(link);
    edges.set(key, edge);
  }
  return [...edges.values()];
}

const isMeasured = (edge: Edge): boolean => edge.links.some((link) => link.measured !== null);

// The switches in the order of their chain, if they form one (or stand alone, or there are none).
function switchChain(places: Place[], neighbours: Map<Place, Set<Place>>, edges: Edge[]): Place[] | null {
  const switches = places.filter((place) => place.kind === "switch");
  const near = (place: Place): Place[] => [...neighbours.get(place)!].filter((other) => other.kind === "switch");
  const linked = switches.reduce((sum, place) => sum + near(place).length, 0) / 2;
  if (switches.length > 5 || switches.some((place) => near(place).length > 2)) return null;
  if (linked !== Math.max(switches.length - 1, 0)) return null;
  const chain: Place[] = [];
  let next = switches.find((place) => near(place).length <= 1);
  while (next) {
    chain.push(next);
    next = near(next).find((place) => !chain.includes(place));
  }
  if (chain.length !== switches.length) return null;
  // Traffic is measured where it queues: draw that direction to the right.
  const rank = (place: Place): number => chain.indexOf(place);
  let rightwards = 0;
  for (const edge of edges) {
    if (edge.from.kind !== "switch" || edge.to.kind !== "switch" || !isMeasured(edge)) continue;
    rightwards += Math.sign(rank(edge.to) - rank(edge.from));
  }
  return rightwards < 0 ? chain.reverse() : chain;
}

const COLUMN_GAP = 54;

function columns(
  places: Place[], neighbours: Map<Place, Set<Place>>, edges: Edge[], chain: Place[], width: number,
): { width: number; height: number } {
  const left: Place[] = [];
  const right: Place[] = [];
  const middle = new Map<Place, Place[]>();
  const hosts = places.filter((place) => place.kind === "host");
  const receives = (host: Place): boolean => edges.some((edge) => edge.to === host && isMeasured(edge));
  const someReceive = hosts.some(receives) && !hosts.every(receives);
  hosts.forEach((host, index) => {
    const first = [...neighbours.get(host)!].find((place) => place.kind === "switch");
    const rank = first ? chain.indexOf(first) : -1;
    if (chain.length > 2 && rank > 0 && rank < chain.length - 1) middle.set(first!, [...(middle.get(first!) ?? []), host]);
    else if (chain.length > 1) (rank === 0 ? left : right).push(host);
    else if (someReceive) (receives(host) ? right : left).push(host);
    else (index === hosts.length - 1 && hosts.length > 1 ? right : left).push(host);
  });
  const tallest = Math.max(left.length, right.length, 1);
  const below = Math.max(0, ...[...middle.values()].map((list) => list.length));
  // A switch with many ports is tall.
  const slots = Math.max(...chain.map((place) => edges.filter(({ from }) => from === place).reduce((sum, edge) => sum + slotCount(edge), 0)), 0);
  const bandHeight = Math.max(tallest * COLUMN_GAP, slots * SLOT + 30, 96);
  const margin = Math.max(...[...left, ...right].map((host) => host.width), 92) / 2 + 10;
  const stack = (list: Place[], x: number): void => list.forEach((place, index) => {
    place.x = x;
    place.y = bandHeight * ((index + 0.5) / list.length);
  });
  stack(left, margin);
  stack(right, width - margin);
  const step = (width - 2 * margin) / (chain.length + 1);
  chain.forEach((place, index) => {
    place.x = margin + step * (index + 1);
    place.y = bandHeight / 2;
    (middle.get(place) ?? []).forEach((host, row) => {
      host.x = place.x;
      host.y = bandHeight + (row + 0.5) * COLUMN_GAP;
    });
  });
  return { width, height: bandHeight + below * COLUMN_GAP };
}

const ROW_GAP = 150;

function rows(
  places: Place[], neighbours: Map<Place, Set<Place>>, edges: Edge[], width: number,
): { width: number; height: number } {
  const tiers = distances(places, neighbours);
  for (const place of places) if (place.kind === "switch") place.width = Math.max(place.width, widthForSlots(place, tiers, edges));
  const count = Math.max(...tiers.values(), 0) + 1;
  const byTier: Place[][] = Array.from({ length: count }, () => []);
  for (const place of [...places].sort((a, b) => natural.compare(a.name, b.name))) byTier[tiers.get(place)!]!.push(place);
  const total = Math.max(width, ...byTier.map((tier) => tier.length * (Math.max(...tier.map((place) => place.width)) + 8)));
  const height = (count - 1) * ROW_GAP + 52;
  const put = (tier: Place[], row: number): void => tier.forEach((place, index) => {
    place.x = total * ((index + 0.5) / tier.length);
    place.y = height - 24 - row * ROW_GAP;
  });
  byTier.forEach(put);
  // Switches stand in the order of their names; hosts follow their switches.
  const mean = (place: Place): number => {
    const above = [...neighbours.get(place)!].map((other) => other.x);
    return above.length === 0 ? place.x : above.reduce((sum, x) => sum + x, 0) / above.length;
  };
  const hosts = byTier[0]!;
  const order = new Map(hosts.map((place) => [place, mean(place)]));
  hosts.sort((a, b) => order.get(a)! - order.get(b)! || natural.compare(a.name, b.name));
  put(hosts, 0);
  return { width: total, height };
}

// A switch is as wide as its slots upwards, or downwards.
function widthForSlots(place: Place, tiers: Map<Place, number>, edges: Edge[]): number {
  const own = edges.filter((edge) => edge.from === place);
  const slots = (up: boolean): number => own.filter((edge) => tiers.get(edge.to)! > tiers.get(place)! === up)
    .reduce((sum, edge) => sum + slotCount(edge), 0);
  return Math.max(slots(true), slots(false)) * SLOT + 8;
}

function slotCount(edge: Edge): number {
  return Math.min(Math.max(edge.links.filter((link) => link.measured !== null).length, 1), MOST_PORTS);
}

// Spreads the slots of each place over its sides, in the order in which the other ends stand.
function giveSlots(places: Place[], edges: Edge[], inRows: boolean): void {
  for (const place of places) {
    const sides = new Map<string, Edge[]>();
    for (const edge of edges.filter(({ from }) => from === place)) {
      const side = sideTowards(place, edge.to, inRows);
      sides.set(side, [...(sides.get(side) ?? []), edge]);
    }
    for (const [side, own] of sides) spread(place, side, own);
  }
  for (const edge of edges) {
    const back = edges.find((other) => other.from === edge.to && other.to === edge.from);
    edge.end = back?.slots[0] ?? { x: edge.to.x, y: edge.to.y, out: { x: 0, y: 0 } };
  }
}

const OUT: Record<string, Point> = {
  left: { x: -1, y: 0 }, right: { x: 1, y: 0 }, top: { x: 0, y: -1 }, bottom: { x: 0, y: 1 },
};

function sideTowards(place: Place, other: Place, inRows: boolean): string {
  const [dx, dy] = [other.x - place.x, other.y - place.y];
  const upright = inRows ? Math.abs(dy) > 1 : Math.abs(dx) < 1;
  return upright ? (dy < 0 ? "top" : "bottom") : dx < 0 ? "left" : "right";
}

function spread(place: Place, side: string, own: Edge[]): void {
  const upright = side === "top" || side === "bottom";
  own.sort((a, b) => upright ? a.to.x - b.to.x : a.to.y - b.to.y);
  const count = own.reduce((sum, edge) => sum + slotCount(edge), 0);
  if (!upright && place.kind === "switch") place.height = Math.max(place.height, count * SLOT + 6);
  const out = OUT[side]!;
  const room = (upright ? place.width : place.height) - 8;
  const step = Math.min(SLOT, room / Math.max(count, 1));
  let index = 0;
  for (const edge of own) {
    edge.slots = Array.from({ length: slotCount(edge) }, () => {
      const along = (index++ - (count - 1) / 2) * step;
      return {
        x: place.x + (upright ? along : (out.x * place.width) / 2),
        y: place.y + (upright ? (out.y * place.height) / 2 : along),
        out,
      };
    });
  }
}

// Hosts are at distance 0. Without hosts, the first switch is.
function distances(places: Place[], neighbours: Map<Place, Set<Place>>): Map<Place, number> {
  const found = new Map<Place, number>();
  let frontier = places.filter((place) => place.kind === "host");
  if (frontier.length === 0) frontier = places.slice(0, 1);
  for (let distance = 0; frontier.length > 0; distance++) {
    for (const place of frontier) found.set(place, distance);
    frontier = [...new Set(frontier.flatMap((place) => [...neighbours.get(place)!]))].filter((place) => !found.has(place));
  }
  for (const place of places) if (!found.has(place)) found.set(place, 0);
  return found;
}
