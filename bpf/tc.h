// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The kernel's ABI (linux/bpf.h) for programs at an interface, as far as it is used.
#pragma once

#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

// Leaves the decision to the next program: TCX_NEXT, and TC_ACT_UNSPEC of a classifier.
enum { NEXT = -1 };

// Drops the packet: TCX_DROP, and TC_ACT_SHOT.
enum { DROP = 2 };

struct bpf_spin_lock {
	__u32 val;
};

// From linux/if_packet.h: a frame for another host.
enum { PACKET_OTHERHOST = 3 };

// The first members of the kernel's structure.
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 not_looked_at[27];
	// The departure time on CLOCK_MONOTONIC; zero: at once.
	__u64 tstamp;
	// The length with the headers of each segment of a super-packet.
	__u32 wire_len;
};
