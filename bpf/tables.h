// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The maps that the programs at interfaces and those of sockets share, with each other and with user space.
#pragma once

#include "tc.h"
#include "flow.h"
#include "key.h"

// The loader sets the sizes.
enum { FLOWS = 65536, RING = 1 << 22 };

struct tracked {
	struct bpf_spin_lock lock;
	__u32 slot;
	// Another CPU may find the entry before it is complete.
	__u32 is_ready;
	__u32 padding;
	struct flow flow;
	// The departure time of the next segment, at an interface with fq.
	__u64 leaves_at;
	// When the connection opened.
	__u64 opened_at;
	// When all that was sent is paid for by the highest rate (see rate.h); zero before the first segment
	// under one.
	__u64 paid_at;
};

// All rates are in bytes per second; zero means that there is none.
struct cap {
	__u64 allowed;
	__u64 floor;
	// On CLOCK_MONOTONIC; zero before user space has decided.
	__u64 expires_at;
	// The rate of departures, if the interface has fq.
	__u64 rate;
	// The highest rate, if the window is to enforce it.
	__u64 max_rate;
	// The rate at which a socket of this machine is to pace itself; every flow with a highest rate has one.
	__u64 socket_rate;
	// Whether one does; written by the kernel.
	__u64 is_socket_paced;
	// A cap is a cache line.
	__u64 padding;
};

// How much longer than the rest of a cap its highest rate holds. On a busy machine user space may be late, and
// a flow without a limit then makes it later.
#define RATE_HOLD_NS 9000000000ULL

// Returns whether a flow has a highest rate that holds.
static inline int holds_rate(const struct cap *cap, __u64 now)
{
	return cap->socket_rate && cap->expires_at && cap->expires_at + RATE_HOLD_NS > now;
}

struct settings {
	// The time between two reports of one flow, in nanoseconds.
	__u64 interval;
	// The flags for submitting reports, and flows that open, to the ring buffer.
	__u64 wake;
	__u64 opens_wake;
	// The network namespace of the interfaces, for programs of sockets.
	__u64 netns_cookie;
	// Whether some rule has a highest rate.
	__u64 has_rates;
	// What no rule limits of a connection's data: this many segments, and this many bytes. Until a sender
	// has sent more, its connection is young, and user space does not hear of it.
	__u64 free_segments;
	__u64 free_bytes;
	// Whether no rule controls a flow, and no flow is controlled.
	__u64 is_idle;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FLOWS);
	__type(key, struct key);
	__type(value, struct tracked);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct cap);
} caps SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");
