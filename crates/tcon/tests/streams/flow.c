// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// bpf/flow.h outside of the kernel: reads what passes, one segment a line, and answers with reports.
//
//   b FIRST SIZE SCALE SACK INTERVAL     the flow begins
//   s NOW SEQUENCE LENGTH FLAGS          the sender has sent
//   a NOW ACKNOWLEDGMENT LENGTH WINDOW FLAGS START END BYTES TOLD
//                                        the receiver has answered, with SACK; the window told

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

static void begin(void)
{
	uint32_t first, size, scale, sack;

	if (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64, &first, &size, &scale,
		  &sack, &interval) != 5)
		return;
	memset(&flow, 0, sizeof(flow));
	flow.una = flow.nxt = first;
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

static void answered(void)
{
	struct segment segment = { 0 };
	struct report report;
	uint64_t now;
	uint32_t told;
	int news;

	if (scanf("%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32
		  " %" SCNu32 " %" SCNu32,
		  &now, &segment.acknowledgment, &segment.length, &segment.window, &segment.flags,
		  &segment.sack_start, &segment.sack_end, &segment.sacked, &told) != 9)
		return;
	news = flow_answered(&flow, now, &segment);
	flow.told = segment.acknowledgment;
	flow.told_window = told;
	if (!(news || flow.is_urgent) || now - flow.reported_at < interval) {
		printf("-\n");
		return;
	}
	flow_report(&flow, now, &report);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %" PRIu64,
	       report.now, report.delivered, report.marked, report.sent_again, report.timeouts,
	       report.sent_at, report.rtt, report.least_rtt);
	printf(" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32, report.passed.sent_at,
	       report.passed.delivered, report.passed.delivered_at, report.passed.first_sent_at,
	       report.passed.in_flight);
	printf(" %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
	       " %" PRIu32 " %" PRIu32 "\n",
	       report.has_passed, report.una, report.nxt, report.sacked, report.sack_end,
	       report.duplicates, report.in_flight_before, report.edge, report.answers);
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
