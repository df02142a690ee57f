// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// What the programs at interfaces tell user space: events by a ring buffer, and counters.
#pragma once

#include "tables.h"

enum counter { OPENED, CLOSED, REFUSED, UNKNOWN, LOWERED, REPORTS, LOST_REPORTS, BEYOND, PASSED, COUNTERS };

enum kind { KIND_OPENED = 1, KIND_CLOSED = 2, KIND_REPORT = 3 };
struct event {
	__u32 kind;
	__u32 slot;
};

struct opened {
	struct event event;
	__u64 now;
	// The RTT from here to the remote end; zero if the handshake did not measure it.
	__u64 rtt;
	struct key key;
	__u32 interface;
	__u32 start;
	__u32 segment_size;
	__u8 scale;
	__u8 has_sack;
	__u8 has_ecn;
	__u8 traffic_class;
};

struct reported {
	struct event event;
	struct report report;
};

// The free slots.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, FLOWS);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING);
} events SEC(".maps");

static __always_inline void count(__u32 what)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		*counter += 1;
}

static __always_inline void give_back(__u32 slot)
{
	bpf_map_push_elem(&slots, &slot, 0);
}

// Removes a flow that has ended. User space frees its slot on the event.
static __always_inline void forget(const struct key *key, __u32 slot)
{
	struct event *event;

	// Another CPU, or user space, may have removed it first.
	if (bpf_map_delete_elem(&flows, key))
		return;
	count(CLOSED);
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		give_back(slot);
		return;
	}
	event->kind = KIND_CLOSED;
	event->slot = slot;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}
