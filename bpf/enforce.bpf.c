// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Programs in both directions of an interface. They follow the TCP connections of the hosts behind it,
// report to user space, and lower the windows of incoming acknowledgments to the limits of user space.
//
// A connection is followed from its SYN. While half-open it is in a separate LRU table, so that a
// flood of SYNs displaces only half-open connections. An open connection takes a slot: the index of
// its cap, and its ID in reports. Without a free slot it passes.
//
// A cap holds until it expires. User space refreshes it as long as it lives; without that, the flows
// are no longer limited.

#include "tc.h"
#include "flow.h"
#include "packet.h"
#include "options.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The loader sets the sizes.
enum { FLOWS = 65536, HALF_OPEN = 16384, RING = 1 << 22 };

// The latest departure time of a segment: fq drops segments more than ten seconds ahead (tc-fq(8)).
#define LATEST_NS 1000000000ULL

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
};

struct tracked {
	struct bpf_spin_lock lock;
	__u32 slot;
	// Another CPU may find the entry before it is complete.
	__u32 is_ready;
	__u32 padding;
	struct flow flow;
	// The departure time of the next segment, with a rate.
	__u64 leaves_at;
};

struct cap {
	__u64 allowed;
	__u64 floor;
	// On CLOCK_MONOTONIC.
	__u64 expires_at;
	// Bytes per second, if the interface has fq; else zero.
	__u64 rate;
};

struct settings {
	// The time between two reports of one flow, in nanoseconds.
	__u64 interval;
	// The flags for submitting to the ring buffer.
	__u64 wake;
};

enum counter { OPENED, CLOSED, REFUSED, UNKNOWN, LOWERED, REPORTS, LOST_REPORTS, COUNTERS };

enum kind { KIND_OPENED = 1, KIND_CLOSED = 2, KIND_REPORT = 3 };
struct event {
	__u32 kind;
	__u32 slot;
};

struct opened {
	struct event event;
	__u64 now;
	// The RTT from here to the remote end; zero if the handshake did not measure it.
	__u64 rtt;
	struct key key;
	__u32 interface;
	__u32 start;
	__u32 segment_size;
	__u8 scale;
	__u8 has_sack;
	__u8 has_ecn;
	__u8 traffic_class;
};

struct reported {
	struct event event;
	struct report report;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, HALF_OPEN);
	__type(key, struct key);
	__type(value, struct handshake);
} handshakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FLOWS);
	__type(key, struct key);
	__type(value, struct tracked);
} flows SEC(".maps");

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

// The free slots.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, FLOWS);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct cap);
} caps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING);
} events SEC(".maps");

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

static __always_inline void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		*counter += 1;
}

static __always_inline void give_back(__u32 slot)
{
	bpf_map_push_elem(&slots, &slot, 0);
}

// Removes a flow that has ended. User space frees its slot on the event.
static __always_inline void forget(const struct key *key, __u32 slot)
{
	struct event *event;

	// Another CPU, or user space, may have removed it first.
	if (bpf_map_delete_elem(&flows, key))
		return;
	count(CLOSED);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		give_back(slot);
		return;
	}
	event->kind = KIND_CLOSED;
	event->slot = slot;
	bpf_ringbuf_submit(event, 0);
}

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
		old = bpf_map_lookup_elem(&flows, key);
		if (old && (packet->segment.flags & ACK))
			return 0;
		if (old)
			forget(key, old->slot);
		if (packet->segment.flags & ACK)
			return 0;
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
	__u8 offer = is_local ? handshake->ecn[LOCAL] : handshake->ecn[REMOTE];
	__u8 answer = is_local ? handshake->ecn[REMOTE] : handshake->ecn[LOCAL];

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
	tracked->flow.sender_rtt = measured_to_sender(handshake, opened->now);
}

// Starts to follow a connection that may have just opened. Returns whether it had a handshake; it may
// still have been refused.
static __noinline int open_flow(struct __sk_buff *skb, struct key *key)
{
	struct handshake *handshake;
	struct tracked *tracked;
	struct zeros *fresh;
	struct opened *opened;
	struct cap *cap;
	__u32 slot, first = 0;
	__u64 now;

	handshake = bpf_map_lookup_elem(&handshakes, key);
	if (!handshake || !handshake->seen[LOCAL] || !handshake->seen[REMOTE])
		return 0;
	if (bpf_map_pop_elem(&slots, &slot)) {
		count(REFUSED);
		goto done;
	}
	opened = bpf_ringbuf_reserve(&events, sizeof(*opened), 0);
	if (!opened) {
		count(REFUSED);
		give_back(slot);
		goto done;
	}
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (cap)
		cap->expires_at = 0;
	fresh = bpf_map_lookup_elem(&empty, &first);
	if (!fresh || bpf_map_update_elem(&flows, key, fresh, BPF_NOEXIST)) {
		count(REFUSED);
		give_back(slot);
		bpf_ringbuf_discard(opened, BPF_RB_NO_WAKEUP);
		goto done;
	}
	tracked = bpf_map_lookup_elem(&flows, key);
	if (!tracked) {
		bpf_ringbuf_discard(opened, BPF_RB_NO_WAKEUP);
		goto done;
	}
	now = bpf_ktime_get_ns();
	tracked->slot = slot;
	opened->event.kind = KIND_OPENED;
	opened->event.slot = slot;
	opened->now = now;
	opened->rtt = measured(handshake, now);
	opened->key = *key;
	opened->interface = skb->ifindex;
	describe(handshake, tracked, opened);
	tracked->is_ready = 1;
	count(OPENED);
	bpf_ringbuf_submit(opened, 0);
done:
	bpf_map_delete_elem(&handshakes, key);
	return 1;
}

static __always_inline void read_sack(struct __sk_buff *skb, const struct tracked *tracked,
				      struct reading *reading)
{
	struct options *options = &reading->options;
	struct packet *packet = &reading->packet;
	__u32 stamps = tracked->flow.has_stamps ? 12 : 0;

	if (!tracked->flow.has_sack || packet->header <= sizeof(struct tcp_header) + stamps)
		return;
	read_options(skb, packet, options);
	if (options->blocks_length)
		read_blocks(skb, options, &packet->segment);
}

static __always_inline void rewrite_window(struct __sk_buff *skb, const struct packet *packet,
					   __u32 window)
{
	__be16 from = bpf_htons(packet->segment.window);
	__be16 to = bpf_htons(window);

	if (bpf_l4_csum_replace(skb, packet->tcp + __builtin_offsetof(struct tcp_header, checksum),
				from, to, sizeof(to)))
		return;
	bpf_skb_store_bytes(skb, packet->tcp + __builtin_offsetof(struct tcp_header, window), &to,
			    sizeof(to), 0);
	count(LOWERED);
}

static __always_inline int is_due(const struct flow *flow, const struct settings *now_set, __u64 now)
{
	__u64 silence = now - flow->reported_at;

	return silence >= now_set->interval ||
	       (flow->is_urgent && silence >= now_set->interval / 4);
}

// Handles an incoming segment of a tracked flow.
static __noinline int answered(struct __sk_buff *skb, struct reading *reading, struct key *key,
			       struct tracked *tracked, __u64 now)
{
	struct packet *packet = &reading->packet;
	__u32 first = 0, slot, window, had_urgent;
	struct reported *reported = 0;
	struct settings *set;
	__u64 allowed = ~0ULL >> 1, floor = 0, wake = 0;
	struct cap *cap;
	int news, over;

	set = bpf_map_lookup_elem(&settings, &first);
	if (!set || !tracked->is_ready)
		return 0;
	read_sack(skb, tracked, reading);
	slot = tracked->slot;
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (cap && cap->expires_at > now) {
		allowed = cap->allowed;
		floor = cap->floor;
	}
	wake = set->wake;
	if (is_due(&tracked->flow, set, now)) {
		reported = bpf_ringbuf_reserve(&events, sizeof(*reported), 0);
		count(reported ? REPORTS : LOST_REPORTS);
	}
	bpf_spin_lock(&tracked->lock);
	news = flow_answered(&tracked->flow, now, &packet->segment);
	window = told_window(&tracked->flow, now, &packet->segment, allowed, floor);
	had_urgent = tracked->flow.is_urgent;
	over = is_over(&tracked->flow);
	if (reported && (news || had_urgent))
		flow_report(&tracked->flow, now, &reported->report);
	bpf_spin_unlock(&tracked->lock);
	if (reported) {
		reported->event.kind = KIND_REPORT;
		reported->event.slot = slot;
		if (news || had_urgent)
			bpf_ringbuf_submit(reported, wake);
		else
			bpf_ringbuf_discard(reported, BPF_RB_NO_WAKEUP);
	}
	if (window < packet->segment.window && (packet->segment.flags & ACK) &&
	    !(packet->segment.flags & RST))
		rewrite_window(skb, packet, window);
	if (over)
		forget(key, slot);
	return 0;
}

// Returns a segment's departure time: not before its sender's, and not later than fq accepts.
static __always_inline __u64 departure(struct tracked *tracked, __u64 now, __u64 wanted, __u32 length,
				       __u64 rate)
{
	__u64 at = tracked->leaves_at > now ? tracked->leaves_at : now;

	if (at < wanted)
		at = wanted;
	if (at > now + LATEST_NS)
		at = now + LATEST_NS;
	tracked->leaves_at = at + length * 1000000000ULL / rate;
	return at;
}

// Handles an outgoing segment of a tracked flow.
static __noinline int sent(struct __sk_buff *skb, struct packet *packet, struct key *key,
			   struct tracked *tracked, __u64 now)
{
	__u64 wanted = skb->tstamp, at = 0, rate = 0;
	__u32 slot, length = skb->wire_len;
	struct cap *cap;
	int over;

	if (!tracked->is_ready)
		return 0;
	slot = tracked->slot;
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (cap && cap->expires_at > now && packet->segment.length)
		rate = cap->rate;
	bpf_spin_lock(&tracked->lock);
	flow_sent(&tracked->flow, now, &packet->segment);
	if (rate)
		at = departure(tracked, now, wanted, length, rate);
	over = is_over(&tracked->flow);
	bpf_spin_unlock(&tracked->lock);
	if (at > now)
		skb->tstamp = at;
	if (over)
		forget(key, slot);
	return 0;
}

// `side` is the sender of the packet.
static __always_inline int follow(struct __sk_buff *skb, __u32 side)
{
	struct key key = {};
	struct reading *reading;
	struct tracked *tracked;
	struct packet *packet;
	__u32 first = 0;
	__u64 now;

	reading = bpf_map_lookup_elem(&readings, &first);
	if (!reading)
		return NEXT;
	__builtin_memset(reading, 0, sizeof(*reading));
	packet = &reading->packet;
	if (!read_packet(skb, packet))
		return NEXT;
	if (side == LOCAL) {
		__builtin_memcpy(key.local, packet->source, 16);
		__builtin_memcpy(key.remote, packet->destination, 16);
		key.local_port = packet->source_port;
		key.remote_port = packet->destination_port;
	} else {
		__builtin_memcpy(key.local, packet->destination, 16);
		__builtin_memcpy(key.remote, packet->source, 16);
		key.local_port = packet->destination_port;
		key.remote_port = packet->source_port;
	}
	if (packet->segment.flags & SYN) {
		if (!(packet->segment.flags & (RST | FIN)))
			on_syn(skb, reading, &key, side);
		return NEXT;
	}
	tracked = bpf_map_lookup_elem(&flows, &key);
	if (!tracked) {
		if (!(packet->segment.flags & ACK) || (packet->segment.flags & RST))
			return NEXT;
		if (open_flow(skb, &key))
			tracked = bpf_map_lookup_elem(&flows, &key);
		if (!tracked) {
			count(UNKNOWN);
			return NEXT;
		}
	}
	now = bpf_ktime_get_ns();
	if (side == LOCAL)
		sent(skb, packet, &key, tracked, now);
	else
		answered(skb, reading, &key, tracked, now);
	return NEXT;
}

SEC("tcx/egress")
int leaving(struct __sk_buff *skb)
{
	return follow(skb, LOCAL);
}

SEC("tcx/ingress")
int arriving(struct __sk_buff *skb)
{
	return follow(skb, REMOTE);
}
