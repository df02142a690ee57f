// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// What a flow with a highest rate may still send: a token bucket as a virtual clock. `paid_at` is the time
// at which the rate has paid for all that was sent. Rates are in bytes per second, times in nanoseconds.
//
// The window that the sender is told ends where the bucket does, so a sender never exceeds the rate by more
// than what the bucket holds. A closed window opens with an acknowledgment only, and the sender asks for one
// after its RTO of 200 ms or more: the bucket holds what the rate brings in that time, or each of these
// pauses would be lost to the flow.
#pragma once

#define SECOND_NS 1000000000ULL

// The time that the bucket holds.
#define HELD_NS (350 * SECOND_NS / 1000)

// What it holds as the connection opens: the initial window of ten segments at 1 Mbps.
#define INITIAL_NS (120 * SECOND_NS / 1000)

// The most that a connection pays for data sent before its rule was known.
#define MOST_EARLY_NS (5 * SECOND_NS)

// The window, in segments, of a connection whose rule is not known yet: first in all, then at a time.
enum { FIRST_SEGMENTS = 10, NEXT_SEGMENTS = 2 };

// A sender that heeds its window never has this debt: the longest super-packet.
enum { MOST_DEBT = 65536 };

// Returns the time in which the rate brings this many bytes.
static inline __u64 time_of(__u64 bytes, __u64 rate)
{
	return bytes * SECOND_NS / rate;
}

// Returns the time that the bucket holds. The window field counts in units of the scale, and a smaller
// bucket than that and a segment would never open it.
static inline __u64 held_time(const struct flow *flow, __u64 rate)
{
	__u64 least = time_of((1ULL << flow->scale) + 2 * flow->segment_size, rate);

	return least > HELD_NS ? least : HELD_NS;
}

// Returns the clock of a connection under a rate for the first time, when it has sent what `flow` tells.
static inline __u64 first_paid_at(const struct flow *flow, __u64 opened_at, __u64 now, __u64 rate)
{
	__u64 sent = flow->acked + (flow->nxt - flow->una);
	__u64 paid_at = opened_at - INITIAL_NS + time_of(sent, rate);

	return paid_at < now + MOST_EARLY_NS ? paid_at : now + MOST_EARLY_NS;
}

// Returns the clock after sending `bytes`.
static inline __u64 spent(__u64 paid_at, __u64 now, __u64 bytes, __u64 rate, __u64 held)
{
	__u64 from = now > held ? now - held : 0;

	return (paid_at > from ? paid_at : from) + time_of(bytes, rate);
}

// Returns the bytes of a segment that its sender pays for: those that the receiver has not acknowledged. What is
// repeated although it has arrived, such as a probe after a withheld acknowledgment, brings the receiver nothing.
static inline __u32 paid_bytes(const struct flow *flow, const struct segment *segment)
{
	int missing = ahead(segment->sequence + segment->length, flow->una);

	if (missing <= 0)
		return 0;
	return (__u32)missing < segment->length ? missing : segment->length;
}

// Returns the bytes that may be sent now, in whole segments.
static inline __u64 room(const struct flow *flow, __u64 paid_at, __u64 now, __u64 rate, __u64 held)
{
	__u64 size = flow->segment_size ? flow->segment_size : 1;
	__u64 saved = now > paid_at ? now - paid_at : 0;

	if (saved > held)
		saved = held;
	return saved / 1000 * rate / (SECOND_NS / 1000) / size * size;
}

// Returns whether a segment only acknowledges all that was sent. With a closed window its sender would ask for
// another after 200 ms, and the receiver answers only every other of such questions (tcp_invalid_ratelimit). If
// it is withheld, the sender repeats its last segment after some 10 ms (a tail loss probe, RFC 8985), and the
// receiver answers each time. A sender that has closed its end needs no window.
static inline int is_last(const struct flow *flow, const struct segment *segment)
{
	return flow->una == flow->nxt && !segment->length && segment->flags == ACK &&
	       segment->acknowledgment == flow->nxt && !(flow->ends & LOCAL_FIN);
}

// Returns the window of a connection whose rule is not known yet. It is never closed.
static inline __u64 first_window(const struct flow *flow)
{
	__u64 first = (__u64)FIRST_SEGMENTS * flow->segment_size;
	__u64 next = (__u64)NEXT_SEGMENTS * flow->segment_size;

	return first > flow->acked + next ? first - flow->acked : next;
}

// Returns whether a segment is new data beyond the window that its sender was told, from a sender in debt.
static inline int is_beyond(const struct flow *flow, const struct segment *segment, __u64 paid_at,
			    __u64 now, __u64 rate)
{
	__u32 end = segment->sequence + segment->length;

	return flow->has_told && ahead(end, flow->nxt) > 0 &&
	       ahead(end, flow->told + (flow->told_window << flow->scale)) > 0 && paid_at > now &&
	       paid_at - now > time_of(MOST_DEBT, rate);
}
