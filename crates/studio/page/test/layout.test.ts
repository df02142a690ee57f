import assert from "node:assert/strict";
import { test } from "node:test";
import type { Link, Node } from "../src/protocol.ts";
import { layout } from "../src/topology/layout.ts";

function network(switches: string[], hosts: string[], pairs: [string, string][], measured: string[] = []): [Node[], Link[]] {
  const nodes: Node[] = [
    ...switches.map((name): Node => ({ name, kind: "switch" })), ...hosts.map((name): Node => ({ name, kind: "host" })),
  ];
  const links = pairs.flatMap(([a, b]) => [[a, b], [b, a]] as const).map(([from, to]): Link => {
    const port = `${from}->${to}`;
    return { port, from, to, rate: 1e9, delay: 1e-5, measured: measured.includes(port) ? measured.indexOf(port) : null };
  });
  return [nodes, links];
}

const numbered = (stem: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${stem}${index}`);

test("a dumbbell runs from left to right, the way of its measured port", () => {
  const senders = numbered("s", 2);
  for (const port of ["east->west", "west->east"]) {
    const { places, shape } = layout(...network(["east", "west"], [...senders, "r"],
      [["east", "west"], ...senders.map((name): [string, string] => [name, port.split("->")[0]!]), [port.split("->")[1]!, "r"]], [port]), 800);
    const x = Object.fromEntries(places.map((place) => [place.name, place.x]));
    assert.equal(shape, "columns");
    const [from, to] = port.split("->") as [string, string];
    assert.ok(x["s0"]! < x[from]! && x[from]! < x[to]! && x[to]! < x["r"]!, port);
  }
});

test("many like hosts of a switch become one place", () => {
  const hosts = numbered("dctcp-", 32);
  const { places, edges } = layout(...network(["s"], [...hosts, "receiver"],
    [...hosts.map((name): [string, string] => [name, "s"]), ["s", "receiver"]], ["s->receiver"]), 800);
  assert.deepEqual(places.map((place) => [place.name, place.members.length]), [["s", 1], ["dctcp", 32], ["receiver", 1]]);
  assert.equal(edges.find((edge) => edge.from.name === "dctcp")!.links.length, 32);
  assert.ok(places[1]!.x < places[0]!.x && places[0]!.x < places[2]!.x);
});

test("a fat tree stands in rows by distance from the hosts", () => {
  const pods = [0, 1, 2, 3];
  const pairs: [string, string][] = pods.flatMap((pod) => [0, 1].flatMap((edge): [string, string][] => [
    [`h${pod}${edge}0`, `edge${pod}${edge}`], [`h${pod}${edge}1`, `edge${pod}${edge}`],
    ...[0, 1].map((up): [string, string] => [`edge${pod}${edge}`, `agg${pod}${up}`]),
    ...[0, 1].map((core): [string, string] => [`agg${pod}${edge}`, `core${edge * 2 + core}`]),
  ]));
  const names = [...new Set(pairs.flat())];
  const { places, shape, width } = layout(...network(names.filter((name) => !name.startsWith("h")), names.filter((name) => name.startsWith("h")), pairs), 900);
  assert.equal(shape, "rows");
  const row = (stem: string): number => {
    const ys = new Set(places.filter((place) => place.name.startsWith(stem)).map((place) => place.y));
    assert.equal(ys.size, 1, stem);
    return [...ys][0]!;
  };
  assert.ok(row("core") < row("agg") && row("agg") < row("edge") && row("edge") < row("h"));
  for (const place of places) assert.ok(place.x >= 0 && place.x <= width && place.y >= 0);
  const spots = new Set(places.map((place) => `${place.x} ${place.y}`));
  assert.equal(spots.size, places.length);
});

test("hosts with two switches stand for themselves", () => {
  const { places } = layout(...network(["s1", "s2"], ["c1", "c2", "server"],
    [["c1", "s1"], ["c2", "s1"], ["c2", "s2"], ["s1", "server"], ["s2", "server"]]), 800);
  assert.equal(places.length, 5);
});

test("hosts without a switch have a place too", () => {
  const { places, edges } = layout(...network([], ["a", "b"], [["a", "b"]], ["a->b"]), 800);
  assert.equal(places.length, 2);
  assert.equal(edges.length, 2);
  assert.notEqual(places[0]!.x, places[1]!.x);
});
