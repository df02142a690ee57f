// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// bpf/flow.h outside of the kernel: reads segments, one a line, and prints reports.
//
//   b FIRST SIZE SCALE SACK RTT SENDER_RTT INTERVAL ANSWERS
//                                        the flow begins; a report is due after both
//   s NOW SEQUENCE LENGTH FLAGS          the sender has sent
//   a NOW ACKNOWLEDGMENT LENGTH WINDOW FLAGS START END BYTES LATEST_START LATEST_END DUPLICATE TOLD
//                                        the receiver has acknowledged, with SACK; the forwarded window

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef uint64_t __u64;

#include "../../../../bpf/flow.h"

static struct flow flow;
static uint64_t interval;
static uint32_t answers;

static void begin(void)
{
	uint32_t first, size, scale, sack;
	uint64_t rtt, sender_rtt;

	if (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64
		  " %" SCNu32,
		  &first, &size, &scale, &sack, &rtt, &sender_rtt, &interval, &answers) != 8)
		return;
	memset(&flow, 0, sizeof(flow));
	flow.una = flow.nxt = flow.known_edge = flow.reached = first;
	flow.smoothed = rtt;
	flow.sender_rtt = sender_rtt;
	flow.segment_size = size;
	flow.scale = scale;
	flow.has_sack = sack;
}

static void sent(void)
{
	struct segment segment = { 0 };
	uint64_t now;

	if (scanf("%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32, &now, &segment.sequence,
		  &segment.length, &segment.flags) == 4)
		flow_sent(&flow, now, &segment);
}

// As is_due() of bpf/enforce.bpf.c for a busy sender: an urgent report waits for a quarter of the interval.
static int is_due(uint64_t now)
{
	uint32_t parts = flow.is_urgent ? 4 : 1;

	return now - flow.reported_at >= interval / parts && flow.answers >= answers / parts;
}

static void answered(void)
{
	struct segment segment = { 0 };
	struct report report;
	uint64_t now;
	uint32_t told;
	int news;

	if (scanf("%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
		  " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32,
		  &now, &segment.acknowledgment, &segment.length, &segment.window, &segment.flags,
		  &segment.sack_start, &segment.sack_end, &segment.sacked, &segment.latest_start,
		  &segment.latest_end, &segment.duplicate, &told) != 12)
		return;
	news = flow_answered(&flow, now, &segment);
	note_told(&flow, now, segment.acknowledgment, told);
	if (!(news || flow.is_urgent) || !is_due(now)) {
		printf("-\n");
		return;
	}
	flow_report(&flow, now, &report);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, report.now,
	       report.delivered, report.marked, report.sent_again, report.timeouts, report.sent_at);
	printf(" %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32,
	       report.una, report.nxt, report.sacked, report.sack_end, report.duplicates,
	       report.in_flight_before, report.answers);
	printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
	       report.limited_until, report.answers_from, report.limited_answers,
	       report.marked_answers, report.skipped, report.skipped_at, report.duplicated);
	for (uint32_t i = 0; i < report.passed_count; i++) {
		const struct place *place = &report.passed[i];

		printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		       place->at, place->upto, place->sent_at, place->delivered,
		       place->delivered_at, place->first_sent_at);
		printf(" %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, place->in_flight,
		       place->sent_again, place->is_limited, place->answer);
	}
	printf("\n");
}

int main(void)
{
	char what;

	while (scanf(" %c", &what) == 1) {
		if (what == 'b')
			begin();
		else if (what == 's')
			sent();
		else if (what == 'a')
			answered();
	}
	return 0;
}
