// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// TCP options: those of a SYN, and SACK blocks.
#pragma once

#include "packet.h"

enum { OPTION_END = 0, OPTION_NOP = 1, OPTION_MSS = 2, OPTION_SCALE = 3, OPTION_SACK_OK = 4,
       OPTION_SACK = 5, OPTION_STAMPS = 8 };
enum { MOST_OPTIONS = 40, DEFAULT_MSS = 536, NO_SCALE = 255, MOST_SCALE = 14 };

struct options {
	__u32 mss;
	__u8 scale;
	__u8 sack_ok;
	__u8 stamps;
	// The offset of the SACK blocks in the packet, and their length in bytes.
	__u8 blocks_length;
	__u32 blocks;
};

// Reads the options of a segment. Each step skips one option, of which there are at most 40.
static __always_inline void read_options(struct __sk_buff *skb, const struct packet *packet,
					 struct options *options)
{
	__u32 offset = packet->tcp + sizeof(struct tcp_header);
	__u32 end = packet->tcp + packet->header;

	options->mss = DEFAULT_MSS;
	options->scale = NO_SCALE;
	options->sack_ok = 0;
	options->stamps = 0;
	options->blocks = 0;
	options->blocks_length = 0;
#pragma clang loop unroll(disable)
	for (int step = 0; step < MOST_OPTIONS; step++) {
		__u8 head[2] = { 0, 0 };
		__be16 mss;

		if (offset >= end || bpf_skb_load_bytes(skb, offset, head, 1) ||
		    head[0] == OPTION_END)
			return;
		if (head[0] == OPTION_NOP) {
			offset++;
			continue;
		}
		if (offset + 2 > end || bpf_skb_load_bytes(skb, offset, head, 2) || head[1] < 2 ||
		    offset + head[1] > end)
			return;
		if (head[0] == OPTION_MSS && head[1] == 4) {
			if (bpf_skb_load_bytes(skb, offset + 2, &mss, sizeof(mss)))
				return;
			options->mss = bpf_ntohs(mss);
		} else if (head[0] == OPTION_SCALE && head[1] == 3) {
			if (bpf_skb_load_bytes(skb, offset + 2, &options->scale, 1))
				return;
			if (options->scale > MOST_SCALE)
				options->scale = MOST_SCALE;
		} else if (head[0] == OPTION_SACK_OK) {
			options->sack_ok = 1;
		} else if (head[0] == OPTION_STAMPS) {
			options->stamps = 1;
		} else if (head[0] == OPTION_SACK) {
			options->blocks = offset + 2;
			options->blocks_length = head[1] - 2;
		}
		offset += head[1];
	}
}

// Adds up the SACK blocks above the acknowledgment; blocks below it are duplicates (RFC 2883).
static __always_inline void read_blocks(struct __sk_buff *skb, const struct options *options,
					struct segment *segment)
{
#pragma clang loop unroll(full)
	for (int place = 0; place < 4; place++) {
		__be32 ends[2];
		__u32 start, end;

		if (place * 8 + 8 > options->blocks_length ||
		    bpf_skb_load_bytes(skb, options->blocks + place * 8, ends, sizeof(ends)))
			return;
		start = bpf_ntohl(ends[0]);
		end = bpf_ntohl(ends[1]);
		if (ahead(start, segment->acknowledgment) <= 0 || ahead(end, start) <= 0)
			continue;
		// A duplicate may repeat the first block within a later one.
		if (place > 0 && segment->sacked && ahead(start, segment->sack_start) >= 0 &&
		    ahead(end, segment->sack_end) <= 0)
			continue;
		segment->sacked += end - start;
		if (segment->sack_end == 0 || ahead(end, segment->sack_end) > 0) {
			segment->sack_end = end;
			segment->sack_start = start;
		}
		if (place == 0) {
			segment->latest_start = start;
			segment->latest_end = end;
		}
	}
}
