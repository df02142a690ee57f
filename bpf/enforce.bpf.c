// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Programs in both directions of an interface. They follow the TCP connections of the hosts behind it,
// report to user space, and lower the windows of incoming acknowledgments to the limits of user space.
//
// A flow with a highest rate (rate.h) is told a window that ends where the rate does. At an interface with fq
// its segments get departure times instead. Sockets of this machine also pace themselves (pacing.bpf.c).
//
// A cap holds until it expires. User space refreshes it as long as it lives; without that, the flows
// are no longer limited.

#include "opening.h"
#include "rate.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The latest departure time of a segment: fq drops segments more than ten seconds ahead (tc-fq(8)).
#define LATEST_NS 1000000000ULL

// How long a connection waits for user space to decide whether it has a highest rate.
#define DECISION_NS 10000000000ULL

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
		read_blocks(options, &packet->segment);
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

// How often a flow is reported in a round trip, if that is longer than the interval of all flows.
#define REPORTS_PER_ROUND_TRIP 8
#define LONGEST_INTERVAL_NS 25000000ULL

// A sender that has little to send is not held back by a window: nothing depends on its reports, unless they
// tell of losses or marks.
#define WITHOUT_NEED 8

static __always_inline int is_due(const struct flow *flow, const struct settings *now_set, __u64 now)
{
	__u64 silence = now - flow->reported_at;
	int is_limited = flow->delivered < flow->limited_until && !flow->marked_answers;
	__u64 interval = now_set->interval, share = flow->smoothed / REPORTS_PER_ROUND_TRIP;

	if (flow->is_urgent)
		return silence >= interval / 4;
	if (share > LONGEST_INTERVAL_NS)
		share = LONGEST_INTERVAL_NS;
	if (interval < share)
		interval = share;
	return silence >= (is_limited ? WITHOUT_NEED * interval : interval);
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
		tracked->paid_at = spent(tracked->paid_at, now, paid_bytes(&tracked->flow, &packet->segment), max_rate,
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

// Counts a connection that opens while no rule controls any.
static __noinline int note_passed(struct __sk_buff *skb)
{
	__u32 flags = read_flags(skb);

	if ((flags & (SYN | ACK)) == (SYN | ACK) && !(flags & RST))
		count(PASSED);
	return NEXT;
}

// `side` is the sender of the packet.
static __always_inline int follow(struct __sk_buff *skb, __u32 side)
{
	struct key key = {};
	struct reading *reading;
	struct tracked *tracked;
	struct packet *packet;
	struct settings *set;
	__u32 first = 0;
	__u64 now;

	set = bpf_map_lookup_elem(&settings, &first);
	if (!set)
		return NEXT;
	if (set->is_idle)
		return note_passed(skb);
	reading = bpf_map_lookup_elem(&readings, &first);
	if (!reading)
		return NEXT;
	packet = &reading->packet;
	if (!read_packet(skb, packet))
		return NEXT;
	key_of(&key, packet, side == LOCAL);
	if (packet->segment.flags & SYN) {
		if (!(packet->segment.flags & (RST | FIN)))
			on_syn(skb, reading, &key, side);
		return NEXT;
	}
	tracked = bpf_map_lookup_elem(&flows, &key);
	if (!tracked) {
		if (!(packet->segment.flags & (ACK | RST)))
			return NEXT;
		if (begin(skb, reading, &key, side))
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
