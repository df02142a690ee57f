// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The fast path of a cable: frames that its process would forward unchanged go straight across, also while
// it lives. These are frames without TCP, and those of connections that no rule controls.
//
// The process sees the SYN and the SYN-ACK of each connection. It announces one that no rule controls before
// it forwards the SYN-ACK, so the connection's other segments come after that, and none overtakes another.
// An announced connection is in an LRU table until its next segment, so that a flood of SYNs displaces only
// those. Segments of a connection that is in no table get to the process.
#pragma once

#include "tc.h"
#include "packet.h"

// The loader sets the number of connections.
enum { ANNOUNCED = 16384, FORWARDED = 65536 };

// Extension headers of IPv6 that packet.h does not follow, and the fragment header.
enum { FRAGMENT = 44, AUTHENTICATION = 51, NO_NEXT = 59, MOBILITY = 135, HOST_IDENTITY = 139, SHIM6 = 140 };

// Without a segment for so long, a connection is forgotten (RFC 5382, section 5): an open one, and one that
// has begun to end.
#define IDLE_NS (7440ULL * 1000000000)
#define ENDING_NS (240ULL * 1000000000)

struct forwarded {
	// When its last segment came, on CLOCK_MONOTONIC.
	__u64 at;
	// The ends that have sent a FIN, one bit each.
	__u64 ends;
};

// What one CPU has counted; by the end of the cable at which frames came in.
struct forwarded_counts {
	__u64 frames[2];
	__u64 bytes[2];
	// Connections.
	__u64 begun;
	__u64 closed;
	__u64 idle;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ANNOUNCED);
	__type(key, struct key);
	__type(value, __u32);
} announced SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FORWARDED);
	__type(key, struct key);
	__type(value, struct forwarded);
} forwarded SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct forwarded_counts);
} forwarded_counts SEC(".maps");

// Returns whether a packet that is no complete TCP segment may still be a part of one.
static __always_inline int may_be_tcp(struct __sk_buff *skb)
{
	__u32 offset, type = behind_tags(skb, &offset);
	__u8 next, head[2];

	if (type == VLAN || type == SERVICE_VLAN)
		return 1;
	if (type == IPV4) {
		offset += __builtin_offsetof(struct ipv4_header, protocol);
		return bpf_skb_load_bytes(skb, offset, &next, 1) || next == PROTOCOL_TCP;
	}
	if (type != IPV6)
		return 0;
	if (bpf_skb_load_bytes(skb, offset + __builtin_offsetof(struct ipv6_header, next), &next, 1))
		return 1;
	offset += sizeof(struct ipv6_header);
	if (next == FRAGMENT) {
		if (bpf_skb_load_bytes(skb, offset, head, sizeof(head)))
			return 1;
		next = head[0];
	}
	return next == PROTOCOL_TCP || next == HOP_BY_HOP || next == ROUTING || next == DESTINATION_OPTIONS ||
	       next == FRAGMENT || next == AUTHENTICATION || next == NO_NEXT || next == MOBILITY ||
	       next == HOST_IDENTITY || next == SHIM6;
}

// Begins to forward an announced connection. Returns its entry, or zero if there is none.
static __always_inline struct forwarded *begin_forwarding(const struct key *key, struct forwarded_counts *counts)
{
	struct forwarded fresh = {};

	if (!bpf_map_lookup_elem(&announced, key))
		return 0;
	if (!bpf_map_update_elem(&forwarded, key, &fresh, BPF_NOEXIST))
		counts->begun++;
	// Without room the process forwards it, to the end.
	bpf_map_delete_elem(&announced, key);
	return bpf_map_lookup_elem(&forwarded, key);
}

static __always_inline void end_forwarding(const struct key *key, struct forwarded_counts *counts)
{
	// Another CPU may have ended it.
	if (!bpf_map_delete_elem(&forwarded, key))
		counts->closed++;
}

// Handles a frame that came in at one end of a cable. Returns whether it goes straight out of the other one.
static __always_inline int is_forwarded(struct __sk_buff *skb, __u32 end, __u64 now)
{
	struct forwarded_counts *counts;
	struct forwarded *connection;
	struct packet packet = {};
	struct key key = {};
	__u32 first = 0, flags;
	__u64 fins;

	// The stack of this machine gets what is for it, and what is for all.
	if (skb->pkt_type != PACKET_OTHERHOST)
		return 0;
	counts = bpf_map_lookup_elem(&forwarded_counts, &first);
	if (!counts)
		return 0;
	end &= 1;
	if (!read_packet(skb, &packet)) {
		if (may_be_tcp(skb))
			return 0;
	} else {
		key_of(&key, &packet, end == 0);
		flags = packet.segment.flags;
		if (flags & SYN) {
			// A SYN begins another connection between the same ports.
			if (!(flags & ACK)) {
				bpf_map_delete_elem(&announced, &key);
				end_forwarding(&key, counts);
			}
			return 0;
		}
		connection = bpf_map_lookup_elem(&forwarded, &key);
		if (!connection)
			connection = begin_forwarding(&key, counts);
		if (!connection)
			return 0;
		connection->at = now;
		fins = connection->ends;
		if (flags & FIN)
			__sync_fetch_and_or(&connection->ends, 1ULL << end);
		// The segment after both FINs acknowledges the last one.
		if ((flags & RST) || (fins == 3 && !(flags & FIN)))
			end_forwarding(&key, counts);
	}
	counts->frames[end]++;
	counts->bytes[end] += skb->len;
	return 1;
}

static long forget_silent(void *map, const struct key *key, struct forwarded *connection, __u64 *now)
{
	struct forwarded_counts *counts;
	__u64 longest = connection->ends ? ENDING_NS : IDLE_NS;
	__u32 first = 0;

	if (*now < connection->at + longest)
		return 0;
	counts = bpf_map_lookup_elem(&forwarded_counts, &first);
	if (!bpf_map_delete_elem(map, key) && counts)
		counts->idle++;
	return 0;
}

// Forgets connections that have been silent for too long. User space runs it.
SEC("syscall")
int weir_forget_silent(void *context)
{
	__u64 now = bpf_ktime_get_ns();

	bpf_for_each_map_elem(&forwarded, forget_silent, &now, 0);
	return 0;
}
