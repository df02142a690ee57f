// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// D2TCP (Vamanan et al., "Deadline-Aware Datacenter TCP", SIGCOMM 2012): DCTCP that reduces the window
// by p/2 with p = alpha^d, where d = Tc/D compares the time needed for the rest of a message with the
// time left. Without a deadline d is 1 and the flow is a DCTCP flow.
#pragma once

#include "dctcp.h"

// Written by the process that owns the socket. `end` counts the bytes of the stream up to the
// message's last one; `at_us` is on CLOCK_MONOTONIC.
struct deadline {
	__u64 end;
	__u64 at_us;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct deadline);
} deadlines SEC(".maps");

static __always_inline __u32 d2tcp_penalty(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 alpha = dctcp_state(sk)->alpha;
	__u64 acked = tp->bytes_acked;
	__u64 now_us = tp->tcp_mstamp;
	struct deadline *deadline;
	__u64 us_left;

	deadline = bpf_sk_storage_get(&deadlines, sk, 0, 0);
	// No deadline, or the message is acknowledged.
	if (!deadline || deadline->end <= acked)
		return alpha;
	us_left = deadline->at_us > now_us ? deadline->at_us - now_us : 0;
	return power(alpha, imminence(deadline->end - acked, us_left,
				      (__u64)tp->snd_cwnd * tp->mss_cache, tp->srtt_us >> 3));
}
