// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Parses a packet at an Ethernet interface: IPv4 with options, IPv6 with extension headers, up to two
// VLAN tags, TCP. Malformed packets, fragments and other protocols are ignored.
#pragma once

#include "tc.h"
#include "flow.h"
#include "key.h"

enum { ETHERNET = 14, ETHERTYPE = 12, VLAN_TAG = 4 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, SERVICE_VLAN = 0x88a8 };
enum { PROTOCOL_TCP = 6, HOP_BY_HOP = 0, ROUTING = 43, DESTINATION_OPTIONS = 60 };

struct packet {
	// Source and destination of the packet.
	__u8 source[16];
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	// The offset of the TCP header, and its length.
	__u32 tcp;
	__u32 header;
	__u32 traffic_class;
	struct segment segment;
};

struct tcp_header {
	__be16 source;
	__be16 destination;
	__be32 sequence;
	__be32 acknowledgment;
	__u8 offset;
	__u8 flags;
	__be16 window;
	__be16 checksum;
	__be16 urgent;
};

struct ipv4_header {
	__u8 version_length;
	__u8 tos;
	__be16 length;
	__be16 id;
	__be16 fragment;
	__u8 ttl;
	__u8 protocol;
	__be16 checksum;
	__u8 source[4];
	__u8 destination[4];
};

struct ipv6_header {
	__u8 version_class;
	__u8 class_flow;
	__be16 flow;
	__be16 length;
	__u8 next;
	__u8 hops;
	__u8 source[16];
	__u8 destination[16];
};

// Returns the ethertype after the VLAN tags, and the offset of its payload; zero if there is none.
static __always_inline __u32 behind_tags(struct __sk_buff *skb, __u32 *offset)
{
	__be16 type;

	*offset = ETHERNET;
	if (bpf_skb_load_bytes(skb, ETHERTYPE, &type, sizeof(type)))
		return 0;
#pragma clang loop unroll(full)
	for (int tag = 0; tag < 2; tag++) {
		if (type != bpf_htons(VLAN) && type != bpf_htons(SERVICE_VLAN))
			break;
		if (bpf_skb_load_bytes(skb, *offset + 2, &type, sizeof(type)))
			return 0;
		*offset += VLAN_TAG;
	}
	return bpf_ntohs(type);
}

static __always_inline void map_address(__u8 *mapped, const __u8 *address)
{
	__builtin_memset(mapped, 0, 10);
	mapped[10] = 0xff;
	mapped[11] = 0xff;
	__builtin_memcpy(mapped + 12, address, 4);
}

// Takes what counts from an IPv4 header at an offset. Returns the offset of TCP, and the packet's end; zero if
// it is not complete TCP.
static __always_inline __u32 take_ipv4(struct __sk_buff *skb, const struct ipv4_header *ip, __u32 offset,
				       struct packet *packet, __u32 *end)
{
	__u32 length = bpf_ntohs(ip->length), header = (ip->version_length & 15) * 4;

	// Fragments: more fragments, or an offset.
	if (ip->version_length >> 4 != 4 || header < sizeof(*ip) || ip->protocol != PROTOCOL_TCP ||
	    (ip->fragment & bpf_htons(0x3fff)))
		return 0;
	// A super-packet of more than 64 KB has length 0.
	*end = length ? offset + length : skb->len;
	packet->traffic_class = ip->tos;
	map_address(packet->source, ip->source);
	map_address(packet->destination, ip->destination);
	return offset + header;
}

// The same for IPv6.
static __always_inline __u32 take_ipv6(struct __sk_buff *skb, const struct ipv6_header *ip, __u32 offset,
				       struct packet *packet, __u32 *end)
{
	__u32 length = bpf_ntohs(ip->length), next = ip->next;

	if (ip->version_class >> 4 != 6)
		return 0;
	offset += sizeof(*ip);
	*end = length ? offset + length : skb->len;
	packet->traffic_class = (ip->version_class & 15) << 4 | ip->class_flow >> 4;
	__builtin_memcpy(packet->source, ip->source, 16);
	__builtin_memcpy(packet->destination, ip->destination, 16);
#pragma clang loop unroll(full)
	for (int extension = 0; extension < 3; extension++) {
		__u8 head[2];

		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS)
			break;
		if (bpf_skb_load_bytes(skb, offset, head, sizeof(head)))
			return 0;
		next = head[0];
		offset += (head[1] + 1) * 8;
	}
	return next == PROTOCOL_TCP ? offset : 0;
}

// Takes what counts from a TCP header; returns whether the segment is complete.
static __always_inline int take_tcp(const struct tcp_header *tcp, __u32 begin, __u32 end, struct packet *packet)
{
	packet->tcp = begin;
	packet->header = (tcp->offset >> 4) * 4;
	if (packet->header < sizeof(*tcp) || begin + packet->header > end)
		return 0;
	packet->source_port = tcp->source;
	packet->destination_port = tcp->destination;
	packet->segment.sequence = bpf_ntohl(tcp->sequence);
	packet->segment.acknowledgment = bpf_ntohl(tcp->acknowledgment);
	packet->segment.length = end - begin - packet->header;
	packet->segment.window = bpf_ntohs(tcp->window);
	packet->segment.flags = tcp->flags;
	packet->segment.sack_end = 0;
	packet->segment.sack_start = 0;
	packet->segment.sacked = 0;
	packet->segment.latest_start = 0;
	packet->segment.latest_end = 0;
	packet->segment.duplicate = 0;
	return 1;
}

// The headers of most packets, for which one read is enough. IP is aligned.
struct plain_headers {
	__u8 padding[2];
	__u8 addresses[ETHERTYPE];
	__be16 type;
	struct ipv4_header ip;
	struct tcp_header tcp;
};

// Parses a complete TCP segment; returns whether it is one.
static __always_inline int read_packet(struct __sk_buff *skb, struct packet *packet)
{
	__u32 type, offset, begin = 0, end = 0;
	struct plain_headers plain;

	if (!bpf_skb_load_bytes(skb, 0, plain.addresses, sizeof(plain) - sizeof(plain.padding)) &&
	    plain.type == bpf_htons(IPV4) && plain.ip.version_length == 0x45) {
		begin = take_ipv4(skb, &plain.ip, ETHERNET, packet, &end);
	} else {
		type = behind_tags(skb, &offset);
		if (type == IPV4) {
			if (bpf_skb_load_bytes(skb, offset, &plain.ip, sizeof(plain.ip)))
				return 0;
			begin = take_ipv4(skb, &plain.ip, offset, packet, &end);
		} else if (type == IPV6) {
			struct ipv6_header ip;

			if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
				return 0;
			begin = take_ipv6(skb, &ip, offset, packet, &end);
		}
		if (!begin || bpf_skb_load_bytes(skb, begin, &plain.tcp, sizeof(plain.tcp)))
			return 0;
	}
	return begin && end <= skb->len && take_tcp(&plain.tcp, begin, end, packet);
}

// Returns the control bits of a TCP segment; zero for other packets, IP fragments, and IPv6 with extension
// headers.
static __always_inline __u32 read_flags(struct __sk_buff *skb)
{
	struct ipv4_header ip;
	__u32 type, offset;
	__u8 next, flags;

	type = behind_tags(skb, &offset);
	if (type == IPV4) {
		if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.protocol != PROTOCOL_TCP ||
		    (ip.fragment & bpf_htons(0x3fff)))
			return 0;
		offset += (ip.version_length & 15) * 4;
	} else if (type == IPV6) {
		offset += __builtin_offsetof(struct ipv6_header, next);
		if (bpf_skb_load_bytes(skb, offset, &next, 1) || next != PROTOCOL_TCP)
			return 0;
		offset += sizeof(struct ipv6_header) - __builtin_offsetof(struct ipv6_header, next);
	} else {
		return 0;
	}
	offset += __builtin_offsetof(struct tcp_header, flags);
	return bpf_skb_load_bytes(skb, offset, &flags, 1) ? 0 : flags;
}

// Fills in the key of a packet's connection. `is_local` tells whether the packet comes from the local end.
static __always_inline void key_of(struct key *key, const struct packet *packet, int is_local)
{
	if (is_local) {
		__builtin_memcpy(key->local, packet->source, 16);
		__builtin_memcpy(key->remote, packet->destination, 16);
		key->local_port = packet->source_port;
		key->remote_port = packet->destination_port;
	} else {
		__builtin_memcpy(key->local, packet->destination, 16);
		__builtin_memcpy(key->remote, packet->source, 16);
		key->local_port = packet->destination_port;
		key->remote_port = packet->source_port;
	}
}
