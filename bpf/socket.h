// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The kernel's types and numbers for programs that see sockets. The loader relocates each field access to the
// running kernel's layout (CO-RE), so only names and sizes count here, not offsets.
#pragma once

#include "sock_ops.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

// From linux/bpf.h.
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 512 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

// From linux/socket.h, asm-generic/socket.h, linux/in.h, linux/in6.h, linux/tcp.h and linux/bpf.h.
enum { AF_INET = 2, AF_INET6 = 10, STREAM = 1 };
enum { SOL_IP = 0, SOL_SOCKET = 1, SOL_TCP = 6, SOL_IPV6 = 41 };
enum { IP_TOS = 1, IPV6_TCLASS = 67, SO_MAX_PACING_RATE = 47, TCP_CONGESTION = 13 };
enum { TCP_RTO_MIN_US = 45, TCP_DELACK_MAX_US = 46 };
enum {
	TCP_BPF_IW = 1001,
	TCP_BPF_SNDCWND_CLAMP = 1002,
	TCP_BPF_DELACK_MAX = 1003,
	TCP_BPF_RTO_MIN = 1004,
	TCP_BPF_SOCK_OPS_CB_FLAGS = 1008,
};

// From net/tcp_states.h and net/tcp.h.
enum {
	TCP_ESTABLISHED = 1,
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
};
// States in which data may still leave.
enum {
	SENDING = 1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK |
		  1 << TCP_CLOSING,
};
enum { TCP_ECN_MODE_RFC3168 = 1, TCP_ECN_MODE_ACCECN = 16 };

#define NAME_LENGTH 16
#define UNLIMITED (~0U)
#define LARGEST_INT 0x7fffffffU

struct in6_addr {
	__u8 s6_addr[16];
};

// The first members of the context.
struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
};

struct bpf_sockopt {
	struct bpf_sock *sk;
	void *optval;
	void *optval_end;
	__s32 level;
	__s32 optname;
	__s32 optlen;
	__s32 retval;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[];
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct {
		__s64 counter;
	} skc_cookie;
	struct sock *skc_listener;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_max_pacing_rate;
	struct sock_cgroup_data sk_cgrp_data;
};

struct ipv6_pinfo {
	__u8 tclass;
};

struct inet_sock {
	struct sock sk;
	struct ipv6_pinfo *pinet6;
	__u8 tos;
};

struct tcp_congestion_ops {
	char name[NAME_LENGTH];
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u32 icsk_rto_min;
	__u32 icsk_delack_max;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 bytes_acked;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 srtt_us;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 total_retrans;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	struct minmax rtt_min;
	__u8 ecn_flags;
	__u8 bpf_sock_ops_cb_flags;
};

struct bpf_sock_ops_kern {
	struct sock *sk;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct sock *sk;
	void *value;
};

struct cred {
	struct {
		unsigned int val;
	} uid;
};

struct task_struct {
	struct task_struct *group_leader;
	const struct cred *real_cred;
	char comm[NAME_LENGTH];
};

struct file;

struct socket {
	short type;
	struct sock *sk;
};

struct bpf_iter__task_file {
	struct task_struct *task;
	struct file *file;
};

#pragma clang attribute pop

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;
