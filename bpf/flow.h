// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// What the kernel notes of the data that a TCP flow sends: una, nxt, what has been delivered, round
// trips, marks and SACK. No decision is made here, and there is no kernel type in it, so that the
// tests can run it outside of the kernel.
//
// Marks stand in the stream of data like milestones: where one ends, when it was sent, and what had
// been delivered by then. The acknowledgment that passes one measures the round trip (not if it was
// sent twice: Karn's rule) and gives what the estimate of the delivery rate needs. There is room for
// MARKS of them; when they get scarce they stand further apart.
#pragma once

#ifndef MARKS
#define MARKS 8
#endif

// A time-out of the sender's: it sends the oldest data again after a silence that is longer than
// this (Linux waits for 200 ms at least).
#define SILENCE_NS 190000000ULL

// A segment's control bits.
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16, ECE = 64, CWR = 128 };

struct mark {
	__u64 sent_at;
	// The flow's, as the mark was sent.
	__u64 delivered;
	__u64 delivered_at;
	__u64 first_sent_at;
	// The number behind its last byte.
	__u32 end;
	// In flight just after it was sent.
	__u32 in_flight;
	__u32 sent_again;
	__u32 padding;
};

// What a segment says.
struct segment {
	__u32 sequence;
	__u32 acknowledgment;
	// Bytes of data.
	__u32 length;
	__u32 window;
	__u32 flags;
	// SACK: the highest number reported, the beginning of that block, and the bytes of all blocks.
	__u32 sack_end;
	__u32 sack_start;
	__u32 sacked;
};

struct flow {
	// Bytes: acknowledged in order, delivered at all, delivered by acknowledgments with an ECN echo,
	// sent again.
	__u64 acked;
	__u64 delivered;
	__u64 marked;
	__u64 sent_again;
	__u64 timeouts;
	__u64 forged;
	__u64 lowered;
	__u64 delivered_at;
	__u64 first_sent_at;
	// When the newest data left, and when anything was heard of the flow.
	__u64 sent_at;
	__u64 active_at;
	__u64 reported_at;
	// Round trips since the last report: the newest, and the least; zero if none.
	__u64 rtt;
	__u64 least_rtt;
	// The newest milestone that was passed since the last report.
	struct mark passed;
	struct mark marks[MARKS];
	__u32 una;
	__u32 nxt;
	__u32 segment_size;
	// Bytes beyond una that the receiver holds, and where they end.
	__u32 sacked;
	__u32 sack_end;
	__u32 duplicates;
	// The first of the marks, and how many there are.
	__u32 first;
	__u32 count;
	// What the sender was last told: the acknowledgment, its window field.
	__u32 told;
	__u32 told_window;
	// The window field as the receiver sent it.
	__u32 window;
	__u32 in_flight_before;
	// Acknowledgments of something new since the last report.
	__u32 answers;
	__u32 room;
	// Behind the FINs, if there were any.
	__u32 fin;
	__u32 remote_fin;
	__u8 scale;
	__u8 has_sack;
	__u8 has_passed;
	__u8 has_told;
	// FINs: 1 local seen, 2 remote seen, 4 local acknowledged, 8 remote acknowledged.
	__u8 ends;
	__u8 is_reset;
	// Data was sent again, or a duplicate acknowledgment came, since the last report.
	__u8 is_urgent;
	__u8 has_stamps;
};

enum { LOCAL_FIN = 1, REMOTE_FIN = 2, LOCAL_ENDED = 4, REMOTE_ENDED = 8 };

// How far `a` lies ahead of `b`.
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

// The sender's end acknowledges what the other one has sent.
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
	flow->count++;
}

// Data of numbers from `start` to `end` has been sent before: what acknowledges it may mean either
// sending.
static inline void note_again(struct flow *flow, __u64 now, __u32 start, __u32 end)
{
	flow->sent_again += end - start;
	flow->is_urgent = 1;
	if (ahead(start, flow->una) <= 0 && !flow->sacked && flow->duplicates < 3 &&
	    now - flow->active_at > SILENCE_NS)
		flow->timeouts++;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[i & (MARKS - 1)];

		// Marks that are over have ends below una.
		if (ahead(mark->end, start) > 0 && ahead(mark->end, end) <= 0) {
			mark->sent_again = 1;
			mark->sent_at = now;
		}
	}
}

// The sender has sent a segment.
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
	// What is further ahead is not of this connection (RFC 7323, section 2.3).
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

// The newest of the marks that have arrived is what the next report tells of.
static inline void pass(struct flow *flow, __u64 now, const struct mark *mark)
{
	if (flow->has_passed && mark->sent_at < flow->passed.sent_at)
		return;
	flow->passed = *mark;
	flow->has_passed = 1;
	flow->first_sent_at = mark->sent_at;
	if (mark->sent_again)
		return;
	flow->rtt = now - mark->sent_at;
	if (!flow->least_rtt || flow->rtt < flow->least_rtt)
		flow->least_rtt = flow->rtt;
}

static inline void pass_acknowledged(struct flow *flow, __u64 now)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[flow->first & (MARKS - 1)];

		if (!flow->count || ahead(mark->end, flow->una) > 0)
			break;
		pass(flow, now, mark);
		flow->first++;
		flow->count--;
	}
}

// Marks within the block that reaches furthest have arrived too. They stay: their ends are passed
// once more, by an acknowledgment that measures nothing new.
static inline void pass_reported(struct flow *flow, __u64 now, const struct segment *segment)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MARKS; i++) {
		struct mark *mark = &flow->marks[i & (MARKS - 1)];

		if (ahead(mark->end, segment->sack_start) > 0 &&
		    ahead(mark->end, segment->sack_end) <= 0 && !mark->sent_again) {
			pass(flow, now, mark);
			mark->sent_again = 1;
		}
	}
}

// The receiver has sent a segment. Whether anything was delivered by it.
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
	flow->in_flight_before = in_flight(flow);
	if ((flow->ends & LOCAL_FIN) && ahead(number, flow->fin) >= 0)
		flow->ends |= LOCAL_ENDED;
	advance = ahead(number, flow->una);
	if (advance < 0)
		return 0;
	if (advance > 0) {
		flow->una = number;
		flow->acked += advance;
		flow->duplicates = 0;
		flow->sacked = flow->sacked > (__u32)advance ? flow->sacked - advance : 0;
	} else if (segment->length == 0 && !(segment->flags & FIN) &&
		   segment->window == flow->window && flow->nxt != flow->una && !flow->has_sack) {
		flow->duplicates++;
		flow->is_urgent = 1;
	}
	// Up to three or four blocks are told of: more than three holes are counted as they fill.
	if (segment->sacked && ahead(segment->sack_end, flow->nxt) <= 0) {
		flow->sacked = segment->sacked;
		flow->sack_end = segment->sack_end;
		flow->is_urgent = 1;
	} else if (advance > 0 && flow->has_sack) {
		flow->sacked = 0;
	}
	flow->window = segment->window;
	delivered = flow->acked + flow->sacked;
	if (delivered > flow->delivered) {
		news = delivered - flow->delivered;
		flow->delivered = delivered;
		flow->delivered_at = now;
		flow->answers++;
		if (segment->flags & ECE)
			flow->marked += news;
	}
	pass_acknowledged(flow, now);
	if (segment->sacked)
		pass_reported(flow, now, segment);
	flow->active_at = now;
	return news > 0;
}

// The window field that the sender is told instead of the receiver's, if at most `allowed` bytes are
// to be outstanding and no less than `floor`. What the receiver holds beyond a hole counts on top:
// the window begins at the hole. An acknowledgment that repeats the one before keeps its window, or
// it would not be taken for a repetition (RFC 5681, section 2).
static inline __u32 told_window(struct flow *flow, const struct segment *segment, __u64 allowed,
				__u64 floor)
{
	__u32 window = segment->window;
	__u64 most = (allowed + flow->sacked) >> flow->scale;
	__u64 least = (floor + (1ULL << flow->scale) - 1) >> flow->scale;
	int repeats = flow->has_told && flow->told == segment->acknowledgment &&
		      segment->length == 0 && flow->nxt != flow->una;

	if (most < least)
		most = least;
	if (repeats && flow->told_window <= window)
		window = flow->told_window;
	else if (window > most)
		window = most;
	if (window < segment->window)
		flow->lowered++;
	flow->told = segment->acknowledgment;
	flow->told_window = window;
	flow->has_told = 1;
	return window;
}

// What user space hears of a flow.
struct report {
	__u64 now;
	__u64 delivered;
	__u64 marked;
	__u64 sent_again;
	__u64 timeouts;
	__u64 forged;
	__u64 lowered;
	__u64 sent_at;
	// Zero if there was none.
	__u64 rtt;
	__u64 least_rtt;
	// A milestone that was passed, if `has_passed`.
	struct mark passed;
	__u32 has_passed;
	__u32 una;
	__u32 nxt;
	__u32 sacked;
	__u32 sack_end;
	__u32 duplicates;
	__u32 in_flight_before;
	// The last number that the sender may send, less the first that it may not: the right edge.
	__u32 edge;
	__u32 answers;
	__u32 padding;
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
	report->rtt = flow->rtt;
	report->least_rtt = flow->least_rtt;
	report->passed = flow->passed;
	report->has_passed = flow->has_passed;
	report->una = flow->una;
	report->nxt = flow->nxt;
	report->sacked = flow->sacked;
	report->sack_end = flow->sack_end;
	report->duplicates = flow->duplicates;
	report->in_flight_before = flow->in_flight_before;
	report->edge = flow->told + (flow->told_window << flow->scale);
	report->answers = flow->answers;
	report->padding = 0;
	flow->reported_at = now;
	flow->answers = 0;
	flow->has_passed = 0;
	flow->rtt = 0;
	flow->least_rtt = 0;
	flow->is_urgent = 0;
}
