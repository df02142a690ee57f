import assert from "node:assert/strict";
import { test } from "node:test";
import { fate, story, summary } from "../src/packets/story.ts";
import type { Packet } from "../src/protocol.ts";

const hop = (marked: boolean) => ({ port: "left->right", from: 0, to: 1, sent: 0, arrived: 1e-5, ecn: marked ? "CE" : "ECT(0)", marked });
const packet = (more: Partial<Packet>): Packet =>
  ({ flow: "web/1", kind: "ACK", text: "", length: 1500, retransmitted: false, lost: null, hops: [hop(false)], ...more });

test("the worst that happened to a packet gives its colour", () => {
  assert.equal(fate(packet({})), "packet-data");
  assert.equal(fate(packet({ length: 52 })), "packet-ack");
  assert.equal(fate(packet({ retransmitted: true })), "packet-again");
  assert.equal(fate(packet({ retransmitted: true, hops: [hop(true)] })), "packet-marked");
  assert.equal(fate(packet({ lost: "left", hops: [hop(true)] })), "packet-lost");
});

test("what happened is told with its place", () => {
  assert.equal(story(packet({})), "");
  assert.equal(story(packet({ retransmitted: true, lost: "left", hops: [hop(true)] })), "sent again, marked at left->right, lost at left");
});

test("the sentence counts, and says when there were more", () => {
  const trace = { from: 0.01, until: 0.02, lanes: [], packets: [packet({ lost: "left" }), packet({ hops: [hop(true)] })], is_cut: true };
  assert.equal(summary(trace), "The last 2 packets from 10 ms to 20 ms: 1 marked, 1 lost, 0 sent again.");
  assert.equal(summary({ ...trace, packets: [] }), "No packet was seen from 10 ms to 20 ms.");
});
