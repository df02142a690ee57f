// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// How a connection opens. It is followed from its SYN. While half-open it is in a separate LRU table, so that a
// flood of SYNs displaces only half-open connections. Then it is young until its sender has sent more than no
// rule limits: it is in another LRU table, and user space does not hear of it. Most connections of services end
// before that. After it the connection takes a slot: the index of its cap, and its ID in reports. Without a free
// slot it passes.
#pragma once

#include "events.h"
#include "packet.h"
#include "options.h"

// The SYNs of a connection, the local and the remote end's.
enum { LOCAL = 0, REMOTE = 1 };
struct handshake {
	__u64 at[2];
	__u32 number[2];
	__u32 mss[2];
	__u8 scale[2];
	__u8 sack_ok[2];
	__u8 stamps[2];
	// The number of times it was seen.
	__u8 seen[2];
	// The ECE and CWR flags.
	__u8 ecn[2];
	__u8 traffic_class;
	// The side with the first SYN.
	__u8 opener;
	// Of a young connection: the FINs seen (LOCAL_FIN, REMOTE_FIN).
	__u8 ends;
	// The number that the remote end has acknowledged, and the one after the local end's last byte.
	__u32 una;
	__u32 nxt;
	__u32 remote_fin;
	// When the handshake was completed.
	__u64 completed_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, HALF_OPEN);
	__type(key, struct key);
	__type(value, struct handshake);
} handshakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FLOWS);
	__type(key, struct key);
	__type(value, struct handshake);
} young SEC(".maps");

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
};

// One for each CPU: nothing else runs these programs there until they end.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reading);
} readings SEC(".maps");

static __noinline int on_syn(struct __sk_buff *skb, struct reading *reading, struct key *key,
			     __u32 side)
{
	struct options *options = &reading->options;
	struct packet *packet = &reading->packet;
	struct handshake *known, fresh = {};
	struct tracked *old;
	__u8 ecn;

	side &= 1;
	ecn = packet->segment.flags & (ECE | CWR);
	read_options(skb, packet, options);
	known = bpf_map_lookup_elem(&handshakes, key);
	if (!known) {
		// A second SYN-ACK of an open connection is a retransmission. Another SYN begins a new
		// connection between the same ports.
		if (packet->segment.flags & ACK)
			return 0;
		old = bpf_map_lookup_elem(&flows, key);
		if (old)
			forget(key, old->slot);
		else
			bpf_map_delete_elem(&young, key);
		fresh.opener = side;
		known = &fresh;
	} else if (known->seen[side] && known->number[side] != packet->segment.sequence) {
		__builtin_memset(known, 0, sizeof(*known));
		known->opener = side;
	}
	known->at[side] = bpf_ktime_get_ns();
	known->number[side] = packet->segment.sequence;
	known->mss[side] = options->mss;
	known->scale[side] = options->scale;
	known->sack_ok[side] = options->sack_ok;
	known->stamps[side] = options->stamps;
	known->ecn[side] = ecn;
	if (known->seen[side] < 2)
		known->seen[side]++;
	if (side == LOCAL)
		known->traffic_class = packet->traffic_class;
	if (known == &fresh)
		bpf_map_update_elem(&handshakes, key, &fresh, 0);
	return 0;
}

static __always_inline __u64 measured(const struct handshake *handshake, __u64 now)
{
	__u64 begin = handshake->at[LOCAL];
	__u64 end = handshake->opener == LOCAL ? handshake->at[REMOTE] : now;

	// If the SYN was sent twice, it is unknown which one is answered.
	return handshake->seen[LOCAL] == 1 && end > begin ? end - begin : 0;
}

// The RTT from here to the sender: its answer to the remote SYN.
static __always_inline __u64 measured_to_sender(const struct handshake *handshake, __u64 now)
{
	__u64 begin = handshake->at[REMOTE];
	__u64 end = handshake->opener == REMOTE ? handshake->at[LOCAL] : now;

	return handshake->seen[REMOTE] == 1 && end > begin ? end - begin : 0;
}

static __always_inline void describe(const struct handshake *handshake, struct tracked *tracked,
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
static __always_inline void continue_from(const struct handshake *handshake, struct flow *flow, __u64 now)
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
static __noinline int open_flow(struct __sk_buff *skb, struct key *key, struct handshake *handshake,
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
static __always_inline int is_young(struct handshake *handshake, const struct segment *segment, __u32 side,
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
static __noinline int begin(struct __sk_buff *skb, struct packet *packet, struct key *key, __u32 side)
{
	struct handshake *handshake, *half_open;
	struct settings *set;
	__u32 first = 0;
	__u8 ends;

	set = bpf_map_lookup_elem(&settings, &first);
	handshake = bpf_map_lookup_elem(&young, key);
	if (!handshake) {
		half_open = bpf_map_lookup_elem(&handshakes, key);
		if (!half_open || !half_open->seen[LOCAL] || !half_open->seen[REMOTE] ||
		    (packet->segment.flags & RST))
			return 0;
		if (!set || !set->free_segments) {
			if (open_flow(skb, key, half_open, set))
				count(OPENED);
			bpf_map_delete_elem(&handshakes, key);
			return 1;
		}
		half_open->completed_at = bpf_ktime_get_ns();
		half_open->una = half_open->nxt = half_open->number[LOCAL] + 1;
		bpf_map_update_elem(&young, key, half_open, 0);
		bpf_map_delete_elem(&handshakes, key);
		count(OPENED);
		handshake = bpf_map_lookup_elem(&young, key);
		if (!handshake)
			return 1;
	}
	ends = handshake->ends;
	if (set && !(packet->segment.flags & RST) && is_young(handshake, &packet->segment, side, set) &&
	    (ends != (LOCAL_FIN | REMOTE_FIN) || (packet->segment.flags & FIN)))
		return 1;
	if ((packet->segment.flags & RST) || ends == (LOCAL_FIN | REMOTE_FIN))
		count(CLOSED);
	else
		open_flow(skb, key, handshake, set);
	bpf_map_delete_elem(&young, key);
	return 1;
}
