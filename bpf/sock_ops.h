// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The context and the operations of sock_ops programs (linux/bpf.h), as far as they are used.
#pragma once

#include "types.h"

enum {
	ACTIVE_ESTABLISHED = 4,
	PASSIVE_ESTABLISHED = 5,
	NEEDS_ECN = 6,
	STATE_CHANGED = 10,
	LISTENS = 11,
	RTT_SAMPLE = 12,
};
// The callbacks that a socket may ask for.
enum { RTO_FLAG = 1, STATE_FLAG = 4, RTT_FLAG = 8 };

// The first members of the context; `reply` is the answer to an operation that asks.
struct bpf_sock_ops {
	__u32 op;
	union {
		__u32 args[4];
		__u32 reply;
	};
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	// The remote port is in network byte order, in the upper half on a little-endian machine.
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 not_looked_at[24];
	struct bpf_sock *sk;
};
