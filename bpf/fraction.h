// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Fixed-point fractions between 0 and 1 with 20 bits, and the arithmetic of DCTCP and D2TCP. It uses
// no kernel types, so that tests can run it outside the kernel.
#pragma once

enum { FRACTION_BITS = 20, ONE = 1 << FRACTION_BITS };

// The imminence factor d of D2TCP in 64ths, and its bounds 0.5 and 2 (section 3.2 of the paper).
enum {
	IMMINENCE_BITS = 6,
	IMMINENCE_ONE = 1 << IMMINENCE_BITS,
	IMMINENCE_MIN = IMMINENCE_ONE / 2,
	IMMINENCE_MAX = IMMINENCE_ONE * 2,
};

// Bounds of the operands, so that no product exceeds 64 bits: 64 GiB, 33 s, 12 days.
#define MOST_BYTES (1ULL << 36)
#define LONGEST_RTT_US (1ULL << 25)
#define LONGEST_NEED_US (1ULL << 40)

// alpha after a window in which `marked` of `delivered` packets were marked:
// alpha (1 - g) + g F (RFC 8257, section 3.3).
static inline __u32 next_alpha(__u32 alpha, __u32 g, __u32 delivered, __u32 marked)
{
	__u64 fraction = 0;
	__u64 next;

	if (delivered) {
		fraction = ((__u64)marked << FRACTION_BITS) / delivered;
		if (fraction > ONE)
			fraction = ONE;
	}
	next = ((__u64)alpha * (ONE - g) + fraction * g) >> FRACTION_BITS;
	return next > ONE ? ONE : next;
}

// The window after a mark, cwnd (1 - p/2). Rounded up, as in Linux: a reduction of less than a packet
// has no effect.
static inline __u32 reduced(__u32 cwnd, __u32 penalty, __u32 min_window)
{
	__u32 window = cwnd - (__u32)(((__u64)cwnd * penalty) >> (FRACTION_BITS + 1));

	return window < min_window ? min_window : window;
}

// The square root by Newton's method from above; 16 steps reach it from 1 for every fraction but 0. No
// branches, because the verifier follows each path through a loop.
static inline __u64 square_root(__u64 fraction)
{
	__u64 square = fraction << FRACTION_BITS;
	__u64 root = ONE;

#pragma clang loop unroll(full)
	for (int step = 0; step < 16; step++)
		root = (root + square / root) >> 1;
	return root;
}

// The penalty alpha^d for d from 0.5 to 2, as a product of repeated square roots of alpha: one for
// each bit of d.
static inline __u32 power(__u32 alpha, __u32 imminence)
{
	__u64 factor = alpha;
	__u64 product = ONE;

	if (alpha == 0)
		return 0;
	if (imminence >= IMMINENCE_MAX)
		return ((__u64)alpha * alpha) >> FRACTION_BITS;
	if (imminence & IMMINENCE_ONE)
		product = alpha;
#pragma clang loop unroll(full)
	for (int bit = IMMINENCE_BITS - 1; bit >= 0; bit--) {
		factor = square_root(factor);
		if (imminence & (1 << bit))
			product = (product * factor) >> FRACTION_BITS;
	}
	return product;
}

// d = Tc/D. The window averages 3/4 of its peak W between two marks, so that B bytes need
// Tc = B / (3/4 W) round trips (section 3.2 of the D2TCP paper).
static inline __u32 imminence(__u64 bytes_left, __u64 us_left, __u64 window_bytes, __u64 rtt_us)
{
	__u64 needed_us, factor;

	if (us_left == 0)
		return IMMINENCE_MAX;
	if (window_bytes == 0)
		return IMMINENCE_ONE;
	if (bytes_left > MOST_BYTES)
		bytes_left = MOST_BYTES;
	if (rtt_us > LONGEST_RTT_US)
		rtt_us = LONGEST_RTT_US;
	needed_us = bytes_left * rtt_us * 4 / (3 * window_bytes);
	if (needed_us > LONGEST_NEED_US)
		needed_us = LONGEST_NEED_US;
	factor = (needed_us << IMMINENCE_BITS) / us_left;
	if (factor < IMMINENCE_MIN)
		return IMMINENCE_MIN;
	return factor > IMMINENCE_MAX ? IMMINENCE_MAX : factor;
}
