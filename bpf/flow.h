// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The state of a TCP flow's data in the kernel: una, nxt, delivered bytes, round trips, marks and SACK.
// It makes no decisions and uses no kernel types, so that tests can run it outside the kernel.
//
// A `mark` is a point in the sent data (not a CE mark): its end, when it was sent, and the bytes
// delivered by then. The acknowledgment that reaches it measures the round trip (not if it was
// retransmitted: Karn's rule) and gives the input for the delivery-rate estimate. There are at most
// MARKS of them; when they become scarce they are spaced further apart.
#pragma once

#ifndef MARKS
#define MARKS 128
#endif

// The most delivery points in a report.
#define PLACES 32

// The most holes that are tracked by their positions.
#define HOLES 32

// The silence before a retransmission of the oldest data counts as a time-out of the sender (Linux's
// minimum RTO is 200 ms).
#define SILENCE_NS 190000000ULL

// The most acknowledgments that one RTT sample stands for in the smoothed RTT.
#define MOST_UNMEASURED 8

// The TCP flags.
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16, ECE = 64, CWR = 128 };

struct mark {
	__u64 sent_at;
	// The flow's values when the mark was sent.
	__u64 delivered;
	__u64 delivered_at;
	__u64 first_sent_at;
	// The sequence number after its last byte.
	__u32 end;
	// Bytes in flight just after it was sent.
	__u32 in_flight;
	// Zero, SENT_AGAIN or HAS_PASSED.
	__u32 sent_again;
	// Whether the sender was application-limited then.
	__u32 is_limited;
};

// The states of a mark other than sent once: retransmitted, or already reported by SACK.
enum { SENT_AGAIN = 1, HAS_PASSED = 2 };

// The fields of a segment.
struct segment {
	__u32 sequence;
	__u32 acknowledgment;
	// Bytes of data.
	__u32 length;
	__u32 window;
	__u32 flags;
	// SACK: the highest number reported, the start of that block, and the bytes of all blocks.
	__u32 sack_end;
	__u32 sack_start;
	__u32 sacked;
	// The first block, with the newest data (RFC 2018, section 4); both zero if there is none.
	__u32 latest_start;
	__u32 latest_end;
	// The bytes that have arrived twice (RFC 2883).
	__u32 duplicate;
};

// Data that the receiver has skipped and not yet received.
struct hole {
	__u32 start;
	__u32 end;
};

// A delivery point: a mark whose data has arrived.
struct place {
	// The time, and the total of delivered bytes then.
	__u64 at;
	__u64 upto;
	// Copied from the mark.
	__u64 sent_at;
	__u64 delivered;
	__u64 delivered_at;
	__u64 first_sent_at;
	__u32 in_flight;
	__u32 sent_again;
	__u32 is_limited;
	// The index of its acknowledgment among those of the report.
	__u32 answer;
};

struct flow {
	// Bytes: acknowledged in order, delivered, delivered by acknowledgments with an ECN echo,
	// retransmitted.
	__u64 acked;
	__u64 delivered;
	__u64 marked;
	__u64 sent_again;
	__u64 timeouts;
	__u64 forged;
	__u64 lowered;
	__u64 delivered_at;
	__u64 first_sent_at;
	// When the newest data left, and when the flow was last active.
	__u64 sent_at;
	__u64 active_at;
	__u64 reported_at;
	struct mark marks[MARKS];
	// The delivery points since the last report, at least `apart` acknowledgments apart, and the newest.
	struct place passed[PLACES];
	struct place newest;
	__u32 apart;
	// The newest of the marks that the current acknowledgment covers, and when that was sent; `found_at` is
	// zero if there is none.
	__u32 found;
	__u64 found_at;
	__u32 una;
	__u32 nxt;
	__u32 segment_size;
	// Bytes beyond una that the receiver holds, and their end.
	__u32 sacked;
	__u32 sack_end;
	__u32 duplicates;
	// The index of the first mark, and the number of marks.
	__u32 first;
	__u32 count;
	__u32 passed_count;
	// The last acknowledgment passed to the sender, and its window field.
	__u32 told;
	__u32 told_window;
	// The window field that the receiver sent with it.
	__u32 offered;
	// The window field sent by the receiver.
	__u32 window;
	__u32 in_flight_before;
	// Acknowledgments of new data since the last report.
	__u32 answers;
	// The right edges of two windows announced to the sender: one that it has had the time to use, and
	// one, announced at `next_at`, that it may not have; zero if there is none.
	__u32 known_edge;
	__u32 next_edge;
	// The sequence numbers after the FINs, if there were any.
	__u32 fin;
	__u32 remote_fin;
	__u8 scale;
	__u8 has_sack;
	__u8 has_told;
	// FINs: 1 local seen, 2 remote seen, 4 local acknowledged, 8 remote acknowledged.
	__u8 ends;
	__u8 is_reset;
	// Data was retransmitted, or a duplicate acknowledgment arrived, since the last report.
	__u8 is_urgent;
	__u8 has_stamps;
	__u8 byte_padding;
	__u64 next_at;
	// RTTs: the sample of the current acknowledgment, or zero; smoothed, to the receiver (RFC 6298); to
	// the sender.
	__u64 measured;
	__u64 smoothed;
	__u64 sender_rtt;
	// The sender was application-limited recently: until this many bytes have been delivered,
	// deliveries measure the sender and not the network.
	__u64 limited_until;
	// The acknowledgments of the next report: the time of the first, and bit sets of those that were
	// application-limited and those with an ECN echo. Bit 0 is the first; the last bit covers all others.
	__u64 answers_from;
	__u64 limited_answers;
	__u64 marked_answers;
	// Bytes that the receiver has skipped, and the sending time of the newest data arrived then.
	__u64 skipped;
	__u64 skipped_at;
	// Bytes that the receiver has got twice, as it reports.
	__u64 duplicated;
	// When data was last retransmitted, and up to which number; senders do so in order.
	__u64 again_at;
	__u32 again_upto;
	// Acknowledgments since the last RTT sample.
	__u32 unmeasured;
	// The highest number reported so far: a SACK block beyond it is reported for the first time.
	__u32 reached;
	// The holes below it, in order. They are kept because an acknowledgment has room for only three or four
	// blocks, and so reports no more holes at a time. The index of the first, and the number of holes.
	struct hole holes[HOLES];
	__u32 first_hole;
	__u32 hole_count;
};

enum { LOCAL_FIN = 1, REMOTE_FIN = 2, LOCAL_ENDED = 4, REMOTE_ENDED = 8 };

// Returns how far `a` is ahead of `b`.
static inline __s32 ahead(__u32 a, __u32 b)
{
	return (__s32)(a - b);
}

static inline __u32 in_flight(const struct flow *flow)
{
	__u32 outstanding = flow->nxt - flow->una;

	return outstanding > flow->sacked ? outstanding - flow->sacked : 0;
}

static inline int is_over(const struct flow *flow)
{
	return flow->is_reset ||
	       (flow->ends & (LOCAL_ENDED | REMOTE_ENDED)) == (LOCAL_ENDED | REMOTE_ENDED);
}

// Notes that the sender's end acknowledges the FIN of the other end.
static inline void note_remote_end(struct flow *flow, const struct segment *segment)
{
	if ((flow->ends & REMOTE_FIN) && (segment->flags & ACK) &&
	    ahead(segment->acknowledgment, flow->remote_fin) >= 0)
		flow->ends |= REMOTE_ENDED;
}

static inline void set_mark(struct flow *flow, __u64 now, __u32 end)
{
	__u32 last = (flow->first + flow->count - 1) & (MARKS - 1);
	struct mark *mark;
	__u32 apart;

	if (flow->count >= MARKS)
		return;
	apart = (flow->nxt - flow->una) / (MARKS / 2);
	if (flow->count >= MARKS / 2 && end - flow->marks[last].end < apart)
		return;
	mark = &flow->marks[(flow->first + flow->count) & (MARKS - 1)];
	mark->sent_at = now;
	mark->delivered = flow->delivered;
	mark->delivered_at = flow->delivered_at;
	mark->first_sent_at = flow->first_sent_at;
	mark->end = end;
	mark->in_flight = in_flight(flow);
	mark->sent_again = 0;
	mark->is_limited = flow->delivered < flow->limited_until;
	flow->count++;
}

// Notes that data from `start` to `end` was retransmitted: an acknowledgment of it may refer to either
// transmission.
static inline void note_again(struct flow *flow, __u64 now, __u32 start, __u32 end)
{
	flow->sent_again += end - start;
	flow->is_urgent = 1;
	// Retransmitted data is sent a third time: the retransmission was lost.
	if (flow->sacked && flow->again_at && ahead(start, flow->again_upto) < 0 &&
	    ahead(flow->again_upto, flow->una) > 0) {
		flow->skipped += end - start;
		flow->skipped_at = flow->again_at;
	}
	flow->again_at = now;
	flow->again_upto = end;
	if (ahead(start, flow->una) <= 0 && !flow->sacked && flow->duplicates < 3 &&
	    now - flow->active_at > SILENCE_NS)
		flow->timeouts++;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[i & (MARKS - 1)];

		// Marks that are acknowledged have ends below una.
		if (ahead(mark->end, start) > 0 && ahead(mark->end, end) <= 0) {
			mark->sent_again = SENT_AGAIN;
			mark->sent_at = now;
			mark->delivered = flow->delivered;
			mark->delivered_at = flow->delivered_at;
			mark->first_sent_at = flow->first_sent_at;
		}
	}
}

// Handles a segment of the sender.
static inline void flow_sent(struct flow *flow, __u64 now, const struct segment *segment)
{
	__u32 start = segment->sequence;
	__u32 end = start + segment->length + ((segment->flags & FIN) != 0);

	if (segment->flags & RST)
		flow->is_reset = 1;
	note_remote_end(flow, segment);
	if (end == start)
		return;
	if (segment->flags & FIN) {
		flow->fin = end;
		flow->ends |= LOCAL_FIN;
	}
	// Data further ahead does not belong to this connection (RFC 7323, section 2.3).
	if (ahead(end, flow->nxt) > (1 << 30) || ahead(end, flow->una) <= 0)
		return;
	if (ahead(start, flow->nxt) < 0)
		note_again(flow, now, start, ahead(end, flow->nxt) < 0 ? end : flow->nxt);
	if (ahead(end, flow->nxt) > 0) {
		if (in_flight(flow) == 0) {
			flow->first_sent_at = now;
			flow->delivered_at = now;
		}
		flow->nxt = end;
		set_mark(flow, now, end);
		flow->sent_at = now;
	}
	flow->active_at = now;
}

// Drops every other delivery point when there are too many.
static inline void thin_out(struct flow *flow)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < PLACES / 2; i++)
		flow->passed[i] = flow->passed[(2 * i) & (PLACES - 1)];
	flow->passed_count = PLACES / 2;
	flow->apart = flow->apart * 2 + 1;
}

// Handles a mark that has newly arrived. An acknowledgment measures by the newest of its marks.
static inline void find(struct flow *flow, const struct mark *mark, __u32 at)
{
	if (mark->sent_at < flow->found_at)
		return;
	flow->found = at;
	flow->found_at = mark->sent_at;
}

// Records the measurement of the acknowledgment. It is outside a loop, because the verifier cannot
// follow it there.
static inline void pass(struct flow *flow, __u64 now)
{
	const struct mark *mark = &flow->marks[flow->found & (MARKS - 1)];
	struct place *place = &flow->newest;
	__u32 answer = flow->answers - 1, last;

	if (!flow->found_at || (flow->passed_count && flow->found_at < place->sent_at))
		return;
	place->at = now;
	place->upto = flow->delivered;
	place->sent_at = mark->sent_at;
	place->delivered = mark->delivered;
	place->delivered_at = mark->delivered_at;
	place->first_sent_at = mark->first_sent_at;
	place->in_flight = mark->in_flight;
	place->sent_again = mark->sent_again == SENT_AGAIN;
	place->is_limited = mark->is_limited;
	place->answer = answer;
	flow->first_sent_at = mark->sent_at;
	if (!place->sent_again)
		flow->measured = now - mark->sent_at;
	// The last entry is kept free for the newest.
	if (flow->passed_count >= PLACES - 1)
		thin_out(flow);
	last = flow->passed_count - 1;
	if (flow->passed_count && answer - flow->passed[last & (PLACES - 1)].answer <= flow->apart)
		return;
	flow->passed[flow->passed_count & (PLACES - 1)] = *place;
	flow->passed_count++;
}

static inline void find_acknowledged(struct flow *flow)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[flow->first & (MARKS - 1)];

		if (!flow->count || ahead(mark->end, flow->una) > 0)
			break;
		if (mark->sent_again != HAS_PASSED)
			find(flow, mark, flow->first);
		flow->first++;
		flow->count--;
	}
}

// Marks within the highest SACK block have arrived too. They stay in the list: a later acknowledgment
// covers their ends again, but measures nothing new.
static inline void find_reported(struct flow *flow, const struct segment *segment)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[i & (MARKS - 1)];

		if (ahead(mark->end, segment->sack_start) > 0 &&
		    ahead(mark->end, segment->sack_end) <= 0 && !mark->sent_again) {
			find(flow, mark, i);
			mark->sent_again = HAS_PASSED;
		}
	}
}

// Notes whether the sender must be application-limited, because it has left room in a window for longer
// than twice its response time and a quarter of the other RTT (data may be released in bursts). This is
// checked here for each acknowledgment, because a batched report no longer shows it.
static inline void note_lack(struct flow *flow, __u64 now)
{
	__u64 patience = flow->sender_rtt * 2 + flow->smoothed / 4;

	if (flow->next_at && now - flow->next_at > patience) {
		flow->known_edge = flow->next_edge;
		flow->next_at = 0;
	}
	if (!flow->sacked && flow->duplicates < 3 &&
	    ahead(flow->known_edge, flow->nxt) >= (__s32)(2 * flow->segment_size))
		flow->limited_until = flow->delivered + in_flight(flow) + 1;
}

// RFC 6298, section 2. Marks are spaced apart: acknowledgments between them count as equal samples.
static inline void note_round_trip(struct flow *flow)
{
	__u32 count = flow->unmeasured;

	if (!flow->measured)
		return;
	if (!flow->smoothed)
		flow->smoothed = flow->measured;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MOST_UNMEASURED; i++) {
		if (i >= count)
			break;
		flow->smoothed = flow->smoothed - flow->smoothed / 8 + flow->measured / 8;
	}
	flow->measured = 0;
	flow->unmeasured = 0;
}

// Notes an acknowledgment of new data.
static inline void note_answer(struct flow *flow, __u64 now, __u32 has_echo)
{
	__u64 bit = 1ULL << (flow->answers < 63 ? flow->answers : 63);

	if (!flow->answers)
		flow->answers_from = now;
	if (flow->delivered < flow->limited_until)
		flow->limited_answers |= bit;
	if (has_echo)
		flow->marked_answers |= bit;
	flow->answers++;
	flow->unmeasured++;
}

// Clears the holes.
static inline void forget_holes(struct flow *flow)
{
	flow->first_hole = 0;
	flow->hole_count = 0;
}

static inline void add_hole(struct flow *flow, __u32 start, __u32 end)
{
	__u32 last = flow->first_hole + flow->hole_count;

	// Without room the last hole is extended.
	if (flow->hole_count >= HOLES) {
		flow->holes[(last - 1) & (HOLES - 1)].end = end;
		return;
	}
	flow->holes[last & (HOLES - 1)].start = start;
	flow->holes[last & (HOLES - 1)].end = end;
	flow->hole_count++;
}

// All ones for a value below zero, else zero. The verifier follows each branch of a loop, so there are
// none, and the compiler must not introduce any.
static inline __s32 sign(__s32 value)
{
	asm volatile("" : "+r"(value));
	return value >> 31;
}

static inline __s32 larger(__s32 one, __s32 other)
{
	return one - ((one - other) & sign(one - other));
}

static inline __s32 smaller(__s32 one, __s32 other)
{
	return other + ((one - other) & sign(one - other));
}

// Fills holes up to una, and with the newest block if it is at an end of one. Returns the bytes left.
static inline __u32 fill_holes(struct flow *flow, __u32 from, __u32 upto)
{
	__s32 has_block = sign(ahead(from, upto)), are_empty = -1;
	__u32 bytes = 0, filled = 0;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < HOLES; i++) {
		struct hole *hole = &flow->holes[(flow->first_hole + i) & (HOLES - 1)];
		__s32 is_one = sign((__s32)(i - flow->hole_count));
		__u32 start = hole->start + larger(ahead(flow->una, hole->start), 0);
		__s32 length = larger(ahead(hole->end, start), 0) & is_one;
		__s32 first = ahead(from, start), last = ahead(upto, start);
		__s32 front = smaller(larger(last, 0), length) & sign(first - 1) & has_block;
		__s32 back = larger(length - first, 0) & sign(-first) & sign(length - last - 1) & has_block;

		hole->start = start + front;
		hole->end = start + length - back;
		length -= front + back;
		bytes += length;
		are_empty &= sign(length - 1);
		filled += are_empty & is_one & 1;
	}
	flow->first_hole += filled;
	flow->hole_count -= filled;
	return bytes;
}

// Returns the bytes beyond una that the receiver holds: reported, or without room in a report.
static inline __u32 held(struct flow *flow, const struct segment *segment)
{
	__u32 lost = fill_holes(flow, segment->latest_start, segment->latest_end);
	__u32 known = flow->reached - flow->una;

	if (ahead(flow->reached, flow->una) <= 0 || known <= lost || known - lost < segment->sacked)
		return segment->sacked;
	return known - lost;
}

// Handles a SACK of data further ahead than before. SACK reports what was skipped on the way there only
// once for certain: later there may be more holes than an acknowledgment has room for.
static inline void note_skipped(struct flow *flow, const struct segment *segment)
{
	__u32 known = ahead(flow->reached, flow->una) > 0 ? flow->reached : flow->una;

	if (ahead(segment->sack_end, known) <= 0)
		return;
	flow->reached = segment->sack_end;
	if (ahead(segment->sack_start, known) > 0) {
		flow->skipped += segment->sack_start - known;
		flow->skipped_at = flow->first_sent_at;
		add_hole(flow, known, segment->sack_start);
	}
}

// Handles a segment of the receiver. Returns whether it delivered any data.
static inline int flow_answered(struct flow *flow, __u64 now, const struct segment *segment)
{
	__u32 number = segment->acknowledgment;
	__u64 delivered, news = 0;
	__s32 advance;

	if (segment->flags & RST) {
		flow->is_reset = 1;
		return 0;
	}
	if (segment->flags & FIN) {
		flow->remote_fin = segment->sequence + segment->length + 1;
		flow->ends |= REMOTE_FIN;
	}
	if (!(segment->flags & ACK))
		return 0;
	if (ahead(number, flow->nxt) > 0) {
		flow->forged++;
		return 0;
	}
	flow->duplicated += segment->duplicate;
	flow->in_flight_before = in_flight(flow);
	note_lack(flow, now);
	if ((flow->ends & LOCAL_FIN) && ahead(number, flow->fin) >= 0)
		flow->ends |= LOCAL_ENDED;
	advance = ahead(number, flow->una);
	if (advance < 0)
		return 0;
	if (advance > 0) {
		flow->una = number;
		if (ahead(flow->reached, number) < 0)
			flow->reached = number;
		flow->acked += advance;
		flow->duplicates = 0;
		flow->sacked = flow->sacked > (__u32)advance ? flow->sacked - advance : 0;
	} else if (segment->length == 0 && !(segment->flags & FIN) &&
		   segment->window == flow->window && flow->nxt != flow->una && !flow->has_sack) {
		flow->duplicates++;
		flow->is_urgent = 1;
	}
	// Only three or four blocks are reported: held() knows the data behind more holes.
	if (segment->sacked && ahead(segment->sack_end, flow->nxt) <= 0) {
		note_skipped(flow, segment);
		flow->sacked = held(flow, segment);
		flow->sack_end = segment->sack_end;
		flow->is_urgent = 1;
	} else if (advance > 0 && flow->has_sack) {
		flow->sacked = 0;
		forget_holes(flow);
	}
	flow->window = segment->window;
	delivered = flow->acked + flow->sacked;
	if (delivered > flow->delivered) {
		news = delivered - flow->delivered;
		note_answer(flow, now, segment->flags & ECE);
		flow->delivered = delivered;
		flow->delivered_at = now;
		if (segment->flags & ECE)
			flow->marked += news;
	}
	flow->found_at = 0;
	find_acknowledged(flow);
	if (segment->sacked)
		find_reported(flow, segment);
	if (news)
		pass(flow, now);
	note_round_trip(flow);
	flow->active_at = now;
	return news > 0;
}

// Notes the window announced to the sender.
static inline void note_told(struct flow *flow, __u64 now, __u32 acknowledgment, __u32 window)
{
	flow->told = acknowledgment;
	flow->told_window = window;
	flow->has_told = 1;
	if (!flow->next_at) {
		flow->next_at = now;
		flow->next_edge = acknowledgment + (window << flow->scale);
	}
}

// Returns the window field to announce to the sender instead of the receiver's, so that at most
// `allowed` bytes are outstanding and no less than `floor`. Data that the receiver holds beyond a hole
// is added, because the window begins at the hole. A duplicate acknowledgment keeps its window, or it
// would not count as a duplicate (RFC 5681, section 2); one with another window of the receiver is none.
static inline __u32 told_window(struct flow *flow, __u64 now, const struct segment *segment,
				__u64 allowed, __u64 floor)
{
	__u32 window = segment->window;
	__u64 most = (allowed + flow->sacked) >> flow->scale;
	__u64 least = (floor + (1ULL << flow->scale) - 1) >> flow->scale;
	int repeats = flow->has_told && flow->told == segment->acknowledgment &&
		      flow->offered == segment->window && segment->length == 0 && flow->nxt != flow->una;

	if (most < least)
		most = least;
	if (repeats && flow->told_window <= window)
		window = flow->told_window;
	else if (window > most)
		window = most;
	if (window < segment->window)
		flow->lowered++;
	flow->offered = segment->window;
	note_told(flow, now, segment->acknowledgment, window);
	return window;
}

// A report of a flow to user space.
struct report {
	__u64 now;
	__u64 delivered;
	__u64 marked;
	__u64 sent_again;
	__u64 timeouts;
	__u64 forged;
	__u64 lowered;
	__u64 sent_at;
	__u32 passed_count;
	__u32 una;
	__u32 nxt;
	__u32 sacked;
	__u32 sack_end;
	__u32 duplicates;
	__u32 in_flight_before;
	__u32 answers;
	__u64 limited_until;
	__u64 answers_from;
	__u64 limited_answers;
	__u64 marked_answers;
	__u64 skipped;
	__u64 skipped_at;
	__u64 duplicated;
	// The first `passed_count` entries are delivery points.
	struct place passed[PLACES];
};

// Fills in a report, and begins the next one.
static inline void flow_report(struct flow *flow, __u64 now, struct report *report)
{
	report->now = now;
	report->delivered = flow->delivered;
	report->marked = flow->marked;
	report->sent_again = flow->sent_again;
	report->timeouts = flow->timeouts;
	report->forged = flow->forged;
	report->lowered = flow->lowered;
	report->sent_at = flow->sent_at;
	if (flow->passed_count &&
	    flow->passed[(flow->passed_count - 1) & (PLACES - 1)].answer != flow->newest.answer) {
		flow->passed[flow->passed_count & (PLACES - 1)] = flow->newest;
		flow->passed_count++;
	}
	report->passed_count = flow->passed_count;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < PLACES; i++) {
		if (i >= flow->passed_count)
			break;
		report->passed[i & (PLACES - 1)] = flow->passed[i & (PLACES - 1)];
	}
	report->una = flow->una;
	report->nxt = flow->nxt;
	report->sacked = flow->sacked;
	report->sack_end = flow->sack_end;
	report->duplicates = flow->duplicates;
	report->in_flight_before = flow->in_flight_before;
	report->answers = flow->answers;
	report->limited_until = flow->limited_until;
	report->answers_from = flow->answers ? flow->answers_from : now;
	report->limited_answers = flow->limited_answers;
	report->marked_answers = flow->marked_answers;
	report->skipped = flow->skipped;
	report->skipped_at = flow->skipped_at;
	report->duplicated = flow->duplicated;
	flow->reported_at = now;
	flow->answers = 0;
	flow->limited_answers = 0;
	flow->marked_answers = 0;
	flow->passed_count = 0;
	flow->apart = 0;
	flow->is_urgent = 0;
}
