// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Reads what rules match from a socket: addresses, ports, its DSCP, its control groups, and the process that
// opened it or its listener.
#pragma once

#include "socket_rules.h"

// Written by the loader.
struct constants {
	// The control group whose sockets are looked at.
	__u64 group;
	// Microseconds of a tick of the kernel's timers.
	__u32 tick;
	// Nothing is changed.
	__u32 is_dry_run;
};

const volatile struct constants constants SEC(".rodata.group") = {};

// The process that opened a socket; zero for a name that is not known.
struct owner {
	__u64 command[2];
	__u32 user;
	__u32 padding;
};

// A connection that comes in gets a copy of its listener's.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct owner);
} owners SEC(".maps");

// The owners of listeners by their cookies, for the requests of connections, which have no storage yet.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct owner);
} listeners SEC(".maps");

static __always_inline void set_owner(struct owner *owner, struct task_struct *task)
{
	struct task_struct *process = task->group_leader;

	bpf_probe_read_kernel_str(owner->command, NAME_LENGTH, process->comm);
	owner->user = process->real_cred->uid.val;
}

static __always_inline __u64 word(const __u8 *bytes)
{
	__u64 value;

	__builtin_memcpy(&value, bytes, sizeof(value));
	return bpf_be64_to_cpu(value);
}

static __always_inline __u64 mapped(__u32 address)
{
	return 0xffffULL << 32 | bpf_ntohl(address);
}

static __always_inline int is_mapped(const __u64 *address)
{
	return !address[0] && address[1] >> 32 == 0xffff;
}

static __always_inline void set_ipv4(struct flow *flow, __u32 from, __u32 to)
{
	flow->from[1] = mapped(from);
	flow->to[1] = mapped(to);
	flow->is_ipv4 = 1;
}

static __always_inline void set_ports(struct flow *flow, __u16 from, __u16 to)
{
	flow->from_port = from;
	flow->to_port = to;
}

// Reads the addresses of a socket; returns whether it has any.
static __always_inline int read_addresses(struct flow *flow, const struct sock_common *common)
{
	__u8 from[16], to[16];

	set_ports(flow, common->skc_num, bpf_ntohs(common->skc_dport));
	if (common->skc_family == AF_INET) {
		set_ipv4(flow, common->skc_rcv_saddr, common->skc_daddr);
		return 1;
	}
	if (common->skc_family != AF_INET6)
		return 0;
	bpf_probe_read_kernel(from, sizeof(from), &common->skc_v6_rcv_saddr);
	bpf_probe_read_kernel(to, sizeof(to), &common->skc_v6_daddr);
	flow->from[0] = word(from);
	flow->from[1] = word(from + 8);
	flow->to[0] = word(to);
	flow->to[1] = word(to + 8);
	flow->is_ipv4 = is_mapped(flow->from) && is_mapped(flow->to);
	return 1;
}

static __always_inline __u64 read_address(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const void *)address);
	return value;
}

// Reads the control groups of a socket, which are those of the process that opened it or its listener.
// Addresses are numbers here, which the verifier lets depend on the level.
static __always_inline void read_groups(struct flow *flow, const struct sock *sk)
{
	__u64 group = read_address((__u64)&sk->sk_cgrp_data.cgroup), above, node;
	int level = 0;

	if (!group)
		return;
	bpf_probe_read_kernel(&level, sizeof(level),
			      (const void *)(group + bpf_core_field_offset(struct cgroup, level)));
#pragma clang loop unroll(disable)
	for (int i = 0; i < MOST_LEVELS; i++) {
		if (i > level)
			break;
		above = read_address(group + bpf_core_field_offset(struct cgroup, ancestors) + 8 * i);
		node = read_address(above + bpf_core_field_offset(struct cgroup, kn));
		flow->groups[i] = read_address(node + bpf_core_field_offset(struct kernfs_node, id));
	}
}

static __always_inline __u32 class_of(const struct inet_sock *inet)
{
	const struct ipv6_pinfo *ipv6;

	if (inet->sk.__sk_common.skc_family != AF_INET6)
		return inet->tos;
	ipv6 = inet->pinet6;
	return ipv6 ? ipv6->tclass : 0;
}

static __always_inline void use_owner(struct flow *flow, const struct owner *owner)
{
	if (!owner)
		return;
	flow->user = owner->user;
	flow->command[0] = owner->command[0];
	flow->command[1] = owner->command[1];
}

// Reads all but the control groups and the process.
static __always_inline int read_flow(struct flow *flow, const struct tcp_sock *tcp)
{
	const struct inet_sock *inet = &tcp->inet_conn.icsk_inet;

	flow->user = NO_USER;
	flow->dscp = class_of(inet) >> 2;
	return read_addresses(flow, &inet->sk.__sk_common);
}
