// Places the nodes of a network: a chain of switches from left to right with the hosts at its ends,
// everything else in rows by distance from the hosts. Many like hosts of a switch become one node.
import type { Link, Node } from "../protocol.ts";

export interface Place {
  /** The node's name, or what the names of the hosts behind it have in common. */
  name: string;
  kind: "switch" | "host";
  /** The nodes that stand here. */
  members: string[];
  x: number;
  y: number;
}

/** One direction between two places, with the links of all members. */
export interface Edge {
  from: Place;
  to: Place;
  links: Link[];
}

export interface Layout {
  shape: "columns" | "rows";
  places: Place[];
  edges: Edge[];
  width: number;
  height: number;
}

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
  const size = chain ? columns(places, neighbours, edges, chain, width) : rows(places, neighbours, width);
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
  const place = (name: string, kind: Place["kind"], members: string[]): void =>
    void places.push({ name, kind, members, x: 0, y: 0 });
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

function joinLinks(places: Place[], links: Link[]): Edge[] {
  const home = new Map(places.flatMap((place) => place.members.map((name) => [name, place] as const)));
  const edges = new Map<string, Edge>();
  for (const link of links) {
    const from = home.get(link.from);
    const to = home.get(link.to);
    if (!from || !to || from === to) continue;
    const key = `${places.indexOf(from)} ${places.indexOf(to)}`;
    const edge = edges.get(key) ?? { from, to, links: [] };
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
  const bandHeight = Math.max(tallest * COLUMN_GAP, 130);
  const margin = 66;
  const spread = (list: Place[], x: number): void => list.forEach((place, index) => {
    place.x = x;
    place.y = bandHeight * ((index + 0.5) / list.length);
  });
  spread(left, margin);
  spread(right, width - margin);
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

const ROW_GAP = 112;
const LEAST_GAP = 34;

function rows(places: Place[], neighbours: Map<Place, Set<Place>>, width: number): { width: number; height: number } {
  const tiers = distances(places, neighbours);
  const count = Math.max(...tiers.values(), 0) + 1;
  const byTier: Place[][] = Array.from({ length: count }, () => []);
  for (const place of [...places].sort((a, b) => natural.compare(a.name, b.name))) byTier[tiers.get(place)!]!.push(place);
  const widest = Math.max(...byTier.map((tier) => tier.length));
  const total = Math.max(width, widest * LEAST_GAP);
  const height = count * ROW_GAP - 36;
  const put = (tier: Place[], row: number): void => tier.forEach((place, index) => {
    place.x = total * ((index + 0.5) / tier.length);
    place.y = height - 30 - row * ROW_GAP;
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
