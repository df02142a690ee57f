// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Programs in both directions of an interface. They follow the TCP connections of the hosts behind it,
// report to user space, and lower the windows of incoming acknowledgments to the limits of user space.
//
// A connection is followed from its SYN. While half-open it is in a separate LRU table, so that a
// flood of SYNs displaces only half-open connections. An open connection takes a slot: the index of
// its cap, and its ID in reports. Without a free slot it passes.
//
// A connection is young until its sender has sent more than no rule limits. Most connections of services end
// before that: they cost an entry in another LRU table, and nothing in user space.
//
// A flow with a highest rate (rate.h) is told a window that ends where the rate does. At an interface with fq
// its segments get departure times instead. Sockets of this machine also pace themselves (pacing.bpf.c).
//
// A cap holds until it expires. User space refreshes it as long as it lives; without that, the flows
// are no longer limited.

#include "tables.h"
#include "rate.h"
#include "packet.h"
#include "options.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The latest departure time of a segment: fq drops segments more than ten seconds ahead (tc-fq(8)).
#define LATEST_NS 1000000000ULL

// How long a connection waits for user space to decide whether it has a highest rate.
#define DECISION_NS 10000000000ULL

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

enum counter { OPENED, CLOSED, REFUSED, UNKNOWN, LOWERED, REPORTS, LOST_REPORTS, BEYOND, COUNTERS };

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

// The free slots.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, FLOWS);
	__type(value, __u32);
} slots SEC(".maps");

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
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
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

// A sender that has little to send is not held back by a window: nothing depends on its reports, unless they
// tell of losses or marks.
#define WITHOUT_NEED 8

static __always_inline int is_due(const struct flow *flow, const struct settings *now_set, __u64 now)
{
	__u64 silence = now - flow->reported_at;
	int is_limited = flow->delivered < flow->limited_until && !flow->marked_answers;

	if (flow->is_urgent)
		return silence >= now_set->interval / 4;
	return silence >= (is_limited ? WITHOUT_NEED * now_set->interval : now_set->interval);
}

// Starts the clock of a flow's highest rate.
static __always_inline void start_clock(struct tracked *tracked, __u64 now, __u64 rate)
{
	if (!tracked->paid_at)
		tracked->paid_at = first_paid_at(&tracked->flow, tracked->opened_at, now, rate);
}

// Returns the window field to announce to the sender. It is called after flow_answered(), whose paths the
// verifier would otherwise follow for each case here.
static __always_inline __u32 limited_window(struct tracked *tracked, __u64 now, const struct segment *segment,
					    const struct cap *cap, const struct settings *set, __u32 *is_withheld)
{
	struct flow *flow = &tracked->flow;
	__u64 allowed = ~0ULL >> 1, floor = 0, rate = 0, by_rate, more;

	if (cap->expires_at > now) {
		allowed = cap->allowed;
		floor = cap->floor;
	} else if (set->has_rates && !cap->expires_at && now - tracked->opened_at < DECISION_NS) {
		allowed = first_window(flow);
	}
	if (holds_rate(cap, now))
		rate = cap->max_rate;
	if (rate) {
		start_clock(tracked, now, rate);
		more = room(flow, tracked->paid_at, now, rate, held_time(flow, rate));
		by_rate = in_flight(flow) + more;
		allowed = allowed > floor ? allowed : floor;
		allowed = allowed < by_rate ? allowed : by_rate;
		// Rounded up: a sender with a window of less than a segment waits, or sends less than one.
		if (more)
			allowed += (1ULL << flow->scale) - 1;
		*is_withheld = !more && is_last(flow, segment);
		floor = 0;
	}
	return told_window(flow, now, segment, allowed, floor);
}

// Handles an incoming segment of a tracked flow.
static __noinline int answered(struct __sk_buff *skb, struct reading *reading, struct key *key,
			       struct tracked *tracked, __u64 now)
{
	struct packet *packet = &reading->packet;
	__u32 first = 0, slot, window, had_urgent;
	struct reported *reported = 0;
	struct settings *set;
	struct cap *cap;
	int news, over;
	__u32 is_withheld = 0;

	set = bpf_map_lookup_elem(&settings, &first);
	if (!set || !tracked->is_ready)
		return NEXT;
	slot = tracked->slot;
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (!cap)
		return NEXT;
	read_sack(skb, tracked, reading);
	if (is_due(&tracked->flow, set, now)) {
		reported = bpf_ringbuf_reserve(&events, sizeof(*reported), 0);
		count(reported ? REPORTS : LOST_REPORTS);
	}
	bpf_spin_lock(&tracked->lock);
	news = flow_answered(&tracked->flow, now, &packet->segment);
	window = limited_window(tracked, now, &packet->segment, cap, set, &is_withheld);
	had_urgent = tracked->flow.is_urgent;
	over = is_over(&tracked->flow);
	if (reported && (news || had_urgent))
		flow_report(&tracked->flow, now, &reported->report);
	bpf_spin_unlock(&tracked->lock);
	if (reported) {
		reported->event.kind = KIND_REPORT;
		reported->event.slot = slot;
		if (news || had_urgent)
			bpf_ringbuf_submit(reported, set->wake);
		else
			bpf_ringbuf_discard(reported, BPF_RB_NO_WAKEUP);
	}
	if (over)
		forget(key, slot);
	if (is_withheld)
		return DROP;
	if (window < packet->segment.window && (packet->segment.flags & ACK) &&
	    !(packet->segment.flags & RST))
		rewrite_window(skb, packet, window);
	return NEXT;
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
	__u64 wanted = skb->tstamp, at = 0, rate = 0, max_rate = 0;
	__u32 slot, length = skb->wire_len;
	struct cap *cap;
	int over, beyond = 0;

	if (!tracked->is_ready)
		return NEXT;
	slot = tracked->slot;
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (cap && packet->segment.length && (cap->expires_at > now || holds_rate(cap, now))) {
		rate = cap->is_socket_paced ? 0 : cap->rate;
		max_rate = cap->max_rate;
	}
	bpf_spin_lock(&tracked->lock);
	if (max_rate) {
		start_clock(tracked, now, max_rate);
		beyond = is_beyond(&tracked->flow, &packet->segment, tracked->paid_at, now, max_rate);
	}
	if (max_rate && !beyond)
		tracked->paid_at = spent(tracked->paid_at, now, packet->segment.length, max_rate,
					 held_time(&tracked->flow, max_rate));
	if (!beyond)
		flow_sent(&tracked->flow, now, &packet->segment);
	if (rate)
		at = departure(tracked, now, wanted, length, rate);
	over = is_over(&tracked->flow);
	bpf_spin_unlock(&tracked->lock);
	if (beyond) {
		count(BEYOND);
		return DROP;
	}
	if (at > now)
		skb->tstamp = at;
	if (over)
		forget(key, slot);
	return NEXT;
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
		if (!(packet->segment.flags & (ACK | RST)))
			return NEXT;
		if (begin(skb, packet, &key, side))
			tracked = bpf_map_lookup_elem(&flows, &key);
		else if (!(packet->segment.flags & RST))
			count(UNKNOWN);
		if (!tracked)
			return NEXT;
	}
	now = bpf_ktime_get_ns();
	if (side == LOCAL)
		return sent(skb, packet, &key, tracked, now);
	return answered(skb, reading, &key, tracked, now);
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
