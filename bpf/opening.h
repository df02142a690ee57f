// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// How a connection opens. It is followed from its SYN, in a table of its own (openings.h). Once open it is
// young until its sender has sent more than no rule limits: user space does not hear of it. Most connections
// of services end before that. After it the connection takes a slot: the index of its cap, and its ID in
// reports. Without a free slot it passes.
#pragma once

#include "events.h"
#include "packet.h"
#include "options.h"
#include "openings.h"

// The initial value of a flow: too large for the stack, and without a lock, which cannot be copied.
struct zeros {
	__u8 bytes[sizeof(struct tracked)];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct zeros);
} empty SEC(".maps");

// What is read of a packet. It is in a map and not on the stack, because the verifier follows each value
// on the stack, but none in a map: programs are loaded in a fifth of the time.
struct reading {
	struct packet packet;
	struct options options;
	__u32 way;
};

// One for each CPU: nothing else runs these programs there until they end.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reading);
} readings SEC(".maps");

// Notes what a SYN offers.
static __always_inline void note_offer(struct opening *opening, const struct reading *reading, __u32 side)
{
	const struct options *options = &reading->options;
	const struct packet *packet = &reading->packet;

	opening->at[side] = bpf_ktime_get_ns();
	opening->number[side] = packet->segment.sequence;
	opening->mss[side] = options->mss;
	opening->scale[side] = options->scale;
	opening->sack_ok[side] = options->sack_ok;
	opening->stamps[side] = options->stamps;
	opening->ecn[side] = packet->segment.flags & (ECE | CWR);
	if (opening->seen[side] < 2)
		opening->seen[side]++;
	if (side == LOCAL)
		opening->traffic_class = packet->traffic_class;
}

// Begins another connection between the same ports.
static __always_inline void begin_anew(struct opening *opening, const struct spot *spot, __u32 side)
{
	struct key key = opening->key;

	if (opening->completed_at)
		count(CLOSED);
	__builtin_memset(opening, 0, sizeof(*opening));
	opening->key = key;
	opening->opener = side;
	touch(spot, 0);
}

static __noinline int on_syn(struct __sk_buff *skb, struct reading *reading, struct key *key,
			     __u32 side)
{
	struct packet *packet = &reading->packet;
	int is_answer = packet->segment.flags & ACK;
	struct opening *opening;
	struct spot spot = { .way = &reading->way };
	struct tracked *old;

	side &= 1;
	opening = look_up(key, &spot);
	if (!spot.set)
		return 0;
	if (opening && opening->seen[side] && opening->number[side] != packet->segment.sequence) {
		if (opening->completed_at && is_answer)
			return 0;
		begin_anew(opening, &spot, side);
	} else if (opening && opening->completed_at) {
		// It is sent again.
		return 0;
	}
	read_options(skb, packet, &reading->options);
	if (opening) {
		note_offer(opening, reading, side);
		return 0;
	}
	// A SYN-ACK of an open connection is sent again. A SYN begins another one between the same ports.
	if (is_answer)
		return 0;
	old = bpf_map_lookup_elem(&flows, key);
	if (old)
		forget(key, old->slot);
	opening = add(key, &spot);
	if (!opening)
		return 0;
	opening->opener = side;
	note_offer(opening, reading, side);
	publish(&spot);
	return 0;
}

static __always_inline __u64 measured(const struct opening *handshake, __u64 now)
{
	__u64 begin = handshake->at[LOCAL];
	__u64 end = handshake->opener == LOCAL ? handshake->at[REMOTE] : now;

	// If the SYN was sent twice, it is unknown which one is answered.
	return handshake->seen[LOCAL] == 1 && end > begin ? end - begin : 0;
}

// The RTT from here to the sender: its answer to the remote SYN.
static __always_inline __u64 measured_to_sender(const struct opening *handshake, __u64 now)
{
	__u64 begin = handshake->at[REMOTE];
	__u64 end = handshake->opener == REMOTE ? handshake->at[LOCAL] : now;

	return handshake->seen[REMOTE] == 1 && end > begin ? end - begin : 0;
}

static __always_inline void describe(const struct opening *handshake, struct tracked *tracked,
				     struct opened *opened)
{
	int both = handshake->scale[LOCAL] != NO_SCALE && handshake->scale[REMOTE] != NO_SCALE;
	__u32 stamps = handshake->stamps[LOCAL] && handshake->stamps[REMOTE] ? 12 : 0;
	__u32 mss = handshake->mss[REMOTE];
	int is_local = handshake->opener == LOCAL;
	__u64 completed_at = handshake->completed_at ? handshake->completed_at : opened->now;
	__u8 offer = is_local ? handshake->ecn[LOCAL] : handshake->ecn[REMOTE];
	__u8 answer = is_local ? handshake->ecn[REMOTE] : handshake->ecn[LOCAL];

	opened->rtt = measured(handshake, completed_at);
	opened->scale = both ? handshake->scale[REMOTE] : 0;
	opened->has_sack = handshake->sack_ok[LOCAL] && handshake->sack_ok[REMOTE];
	// RFC 3168, section 6.1.1: the offer has ECE and CWR, its acceptance only ECE.
	opened->has_ecn = offer == (ECE | CWR) && answer == ECE;
	opened->segment_size = mss > stamps ? mss - stamps : 1;
	opened->start = handshake->number[LOCAL] + 1;
	opened->traffic_class = handshake->traffic_class;
	tracked->flow.scale = opened->scale;
	tracked->flow.has_sack = opened->has_sack;
	tracked->flow.has_stamps = stamps != 0;
	tracked->flow.segment_size = opened->segment_size;
	tracked->flow.una = opened->start;
	tracked->flow.nxt = opened->start;
	tracked->flow.known_edge = opened->start;
	tracked->flow.reached = opened->start;
	tracked->flow.smoothed = opened->rtt;
	tracked->flow.sender_rtt = measured_to_sender(handshake, completed_at);
}

// Continues where a young connection is.
static __always_inline void continue_from(const struct opening *handshake, struct flow *flow, __u64 now)
{
	__u32 start = handshake->number[LOCAL] + 1;

	if (!handshake->completed_at)
		return;
	flow->una = handshake->una;
	flow->nxt = handshake->nxt;
	flow->known_edge = flow->nxt;
	flow->reached = flow->una;
	flow->acked = flow->una - start;
	flow->delivered = flow->acked;
	flow->delivered_at = now;
	flow->first_sent_at = now;
	flow->remote_fin = handshake->remote_fin;
	flow->ends = handshake->ends & REMOTE_FIN;
}

// Starts to control a connection.
static __noinline int open_flow(struct __sk_buff *skb, struct key *key, struct opening *handshake,
				struct settings *set)
{
	struct tracked *tracked;
	struct zeros *fresh;
	struct opened *opened;
	struct cap *cap;
	__u32 slot, first = 0;
	__u64 now;

	if (bpf_map_pop_elem(&slots, &slot)) {
		count(REFUSED);
		return 0;
	}
	opened = bpf_ringbuf_reserve(&events, sizeof(*opened), 0);
	if (!opened) {
		count(REFUSED);
		give_back(slot);
		return 0;
	}
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (cap) {
		cap->expires_at = 0;
		cap->is_socket_paced = 0;
	}
	fresh = bpf_map_lookup_elem(&empty, &first);
	if (!fresh || bpf_map_update_elem(&flows, key, fresh, BPF_NOEXIST)) {
		count(REFUSED);
		give_back(slot);
		bpf_ringbuf_discard(opened, BPF_RB_NO_WAKEUP);
		return 0;
	}
	tracked = bpf_map_lookup_elem(&flows, key);
	if (!tracked) {
		bpf_ringbuf_discard(opened, BPF_RB_NO_WAKEUP);
		return 0;
	}
	now = bpf_ktime_get_ns();
	tracked->slot = slot;
	tracked->opened_at = now;
	opened->event.kind = KIND_OPENED;
	opened->event.slot = slot;
	opened->now = now;
	opened->key = *key;
	opened->interface = skb->ifindex;
	describe(handshake, tracked, opened);
	continue_from(handshake, &tracked->flow, now);
	tracked->is_ready = 1;
	bpf_ringbuf_submit(opened, set ? set->opens_wake : 0);
	return 1;
}

// Handles a packet of a connection whose handshake is complete. Returns whether its sender has still sent
// no more than no rule limits.
static __always_inline int is_young(struct opening *handshake, const struct segment *segment, __u32 side,
				    const struct settings *set)
{
	__u32 start = handshake->number[LOCAL] + 1, limit, end;
	__u64 segments = set->free_segments * handshake->mss[REMOTE];

	limit = segments < set->free_bytes ? segments : set->free_bytes;
	if (side == REMOTE) {
		if ((segment->flags & ACK) && ahead(segment->acknowledgment, handshake->una) > 0 &&
		    ahead(segment->acknowledgment, handshake->nxt) <= 0)
			handshake->una = segment->acknowledgment;
		if (segment->flags & FIN) {
			handshake->remote_fin = segment->sequence + segment->length + 1;
			handshake->ends |= REMOTE_FIN;
		}
		return 1;
	}
	end = segment->sequence + segment->length;
	if (segment->flags & FIN)
		handshake->ends |= LOCAL_FIN;
	// The segment that opens the flow is counted there.
	if (ahead(end, start + limit) > 0)
		return 0;
	if (ahead(end, handshake->nxt) > 0)
		handshake->nxt = end;
	return 1;
}

// Handles a packet of a connection that is not controlled. Returns whether its handshake was seen.
static __noinline int begin(struct __sk_buff *skb, struct reading *reading, struct key *key, __u32 side)
{
	struct spot spot = { .way = &reading->way };
	struct packet *packet = &reading->packet;
	int is_reset = packet->segment.flags & RST;
	struct settings *set;
	struct opening *opening;
	__u32 first = 0;
	__u8 ends;

	set = bpf_map_lookup_elem(&settings, &first);
	opening = look_up(key, &spot);
	if (!set || !opening)
		return 0;
	if (!opening->completed_at) {
		if (is_reset || !opening->seen[LOCAL] || !opening->seen[REMOTE]) {
			if (is_reset && claim(&spot))
				release(&spot);
			return 0;
		}
		if (!set->free_segments) {
			if (!claim(&spot))
				return 0;
			if (open_flow(skb, key, opening, set))
				count(OPENED);
			release(&spot);
			return 1;
		}
		opening->una = opening->nxt = opening->number[LOCAL] + 1;
		opening->completed_at = bpf_ktime_get_ns();
		count(OPENED);
	}
	touch(&spot, YOUNG);
	ends = opening->ends;
	if (!is_reset && is_young(opening, &packet->segment, side, set) &&
	    (ends != (LOCAL_FIN | REMOTE_FIN) || (packet->segment.flags & FIN)))
		return 1;
	// Another CPU may do the same.
	if (!claim(&spot))
		return 1;
	if (is_reset || ends == (LOCAL_FIN | REMOTE_FIN))
		count(CLOSED);
	else
		open_flow(skb, key, opening, set);
	release(&spot);
	return 1;
}
