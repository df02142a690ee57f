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
	// Where the SACK blocks are in `bytes`, and their length in bytes.
	__u8 blocks;
	__u8 blocks_length;
	// The next option. It is here and not in a register, because the verifier follows each of its values there.
	volatile __u8 at;
	volatile __u8 length;
	// All options, and more: offsets up to 63 are valid.
	__u8 bytes[72];
};

static __always_inline __u8 option_byte(const struct options *options, __u32 at)
{
	return options->bytes[at & 63];
}

// Notes one option at an offset.
static __always_inline void note_option(struct options *options, __u32 at, __u32 kind, __u32 size)
{
	if (kind == OPTION_MSS && size == 4) {
		options->mss = option_byte(options, at + 2) << 8 | option_byte(options, at + 3);
	} else if (kind == OPTION_SCALE && size == 3) {
		__u8 scale = option_byte(options, at + 2);

		options->scale = scale > MOST_SCALE ? MOST_SCALE : scale;
	} else if (kind == OPTION_SACK_OK) {
		options->sack_ok = 1;
	} else if (kind == OPTION_STAMPS) {
		options->stamps = 1;
	} else if (kind == OPTION_SACK) {
		options->blocks = at + 2;
		options->blocks_length = size - 2;
	}
}

// Reads the options of a segment. Each step skips one option, of which there are at most 40.
static __always_inline void read_options(struct __sk_buff *skb, const struct packet *packet,
					 struct options *options)
{
	__u32 length = packet->header - sizeof(struct tcp_header);

	options->mss = DEFAULT_MSS;
	options->scale = NO_SCALE;
	options->sack_ok = 0;
	options->stamps = 0;
	options->blocks = 0;
	options->blocks_length = 0;
	if (length - 1 >= MOST_OPTIONS ||
	    bpf_skb_load_bytes(skb, packet->tcp + sizeof(struct tcp_header), options->bytes, length))
		return;
	options->at = 0;
	options->length = length;
#pragma clang loop unroll(disable)
	for (int step = 0; step < MOST_OPTIONS; step++) {
		__u32 kind, size = 1, at = options->at;

		if (at >= options->length)
			return;
		kind = option_byte(options, at);
		if (kind == OPTION_END)
			return;
		if (kind != OPTION_NOP) {
			size = option_byte(options, at + 1);
			if (size < 2 || at + size > options->length)
				return;
			note_option(options, at, kind, size);
		}
		options->at = at + size;
	}
}

static __always_inline __u32 option_word(const struct options *options, __u32 at)
{
	__be32 word;

	__builtin_memcpy(&word, &options->bytes[at & 63], sizeof(word));
	return bpf_ntohl(word);
}

// Adds up the SACK blocks above the acknowledgment. The first block tells of data that has arrived twice if it is
// below the acknowledgment, or within the second one (RFC 2883, section 4).
static __always_inline void read_blocks(const struct options *options, struct segment *segment)
{
#pragma clang loop unroll(full)
	for (int place = 0; place < 4; place++) {
		__u32 start, end;

		if (place * 8 + 8 > options->blocks_length)
			return;
		start = option_word(options, options->blocks + place * 8);
		end = option_word(options, options->blocks + place * 8 + 4);
		if (ahead(end, start) <= 0)
			continue;
		if (ahead(start, segment->acknowledgment) <= 0) {
			if (place == 0 && ahead(end, segment->acknowledgment) <= 0)
				segment->duplicate = end - start;
			continue;
		}
		if (place == 1 && segment->sacked && ahead(start, segment->latest_start) <= 0 &&
		    ahead(segment->latest_end, end) <= 0) {
			segment->duplicate = segment->sacked;
			segment->sacked = 0;
		}
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
