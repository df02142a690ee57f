// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Parses a packet at an Ethernet interface: IPv4 with options, IPv6 with extension headers, up to two
// VLAN tags, TCP. Malformed packets, fragments and other protocols are ignored.
#pragma once

#include "tables.h"

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

// Returns the offset of TCP in the IP packet, and the packet's end; zero if it is not complete TCP.
static __always_inline __u32 read_ipv4(struct __sk_buff *skb, __u32 offset, struct packet *packet,
				       __u32 *end)
{
	struct ipv4_header ip;
	__u32 length, header;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
		return 0;
	header = (ip.version_length & 15) * 4;
	length = bpf_ntohs(ip.length);
	// Fragments: more fragments, or an offset.
	if (ip.version_length >> 4 != 4 || header < sizeof(ip) || ip.protocol != PROTOCOL_TCP ||
	    (ip.fragment & bpf_htons(0x3fff)))
		return 0;
	// A super-packet of more than 64 KB has length 0.
	*end = length ? offset + length : skb->len;
	packet->traffic_class = ip.tos;
	map_address(packet->source, ip.source);
	map_address(packet->destination, ip.destination);
	return offset + header;
}

static __always_inline __u32 read_ipv6(struct __sk_buff *skb, __u32 offset, struct packet *packet,
				       __u32 *end)
{
	struct ipv6_header ip;
	__u32 length, next;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.version_class >> 4 != 6)
		return 0;
	length = bpf_ntohs(ip.length);
	offset += sizeof(ip);
	*end = length ? offset + length : skb->len;
	packet->traffic_class = (ip.version_class & 15) << 4 | ip.class_flow >> 4;
	__builtin_memcpy(packet->source, ip.source, 16);
	__builtin_memcpy(packet->destination, ip.destination, 16);
	next = ip.next;
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

// Parses a complete TCP segment; returns whether it is one.
static __always_inline int read_packet(struct __sk_buff *skb, struct packet *packet)
{
	struct tcp_header tcp;
	__u32 type, offset, begin = 0, end = 0;

	type = behind_tags(skb, &offset);
	if (type == IPV4)
		begin = read_ipv4(skb, offset, packet, &end);
	else if (type == IPV6)
		begin = read_ipv6(skb, offset, packet, &end);
	if (!begin || end > skb->len || bpf_skb_load_bytes(skb, begin, &tcp, sizeof(tcp)))
		return 0;
	packet->tcp = begin;
	packet->header = (tcp.offset >> 4) * 4;
	if (packet->header < sizeof(tcp) || begin + packet->header > end)
		return 0;
	packet->source_port = tcp.source;
	packet->destination_port = tcp.destination;
	packet->segment.sequence = bpf_ntohl(tcp.sequence);
	packet->segment.acknowledgment = bpf_ntohl(tcp.acknowledgment);
	packet->segment.length = end - begin - packet->header;
	packet->segment.window = bpf_ntohs(tcp.window);
	packet->segment.flags = tcp.flags;
	packet->segment.sack_end = 0;
	packet->segment.sack_start = 0;
	packet->segment.sacked = 0;
	packet->segment.latest_start = 0;
	packet->segment.latest_end = 0;
	return 1;
}
