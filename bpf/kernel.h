// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The kernel types that the programs use. The loader relocates each field access to the running
// kernel's layout (CO-RE), so only names and sizes count here, not offsets.
#pragma once

#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

// From linux/bpf.h.
enum { BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

// From linux/tcp.h and asm-generic/socket.h.
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };

// From net/tcp.h, where they are macros: flags of a congestion control, and of `ecn_flags`.
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };
#define TCP_INFINITE_SSTHRESH 0x7fffffffU
enum { TCP_ECN_MODE_RFC3168 = 1, TCP_ECN_DEMAND_CWR = 4, TCP_ECN_MODE_ACCECN = 16 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

enum tcp_ca_event {
	CA_EVENT_LOSS = 3,
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

enum tcp_ca_state {
	TCP_CA_Recovery = 3,
};

enum inet_csk_ack_state_t {
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_NOW = 16,
};

struct sock {
	__u8 *sk_user_data;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	__u64 bytes_acked;
	__u64 tcp_mstamp;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 mss_cache;
	__u32 rcv_nxt;
	__u32 snd_cwnd;
	__u32 snd_nxt;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 srtt_us;
	__u8 ecn_flags;
};

#pragma clang attribute pop

// The loader copies the members by name. `name` is first here so that it can be written into the
// object before loading.
struct tcp_congestion_ops {
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 (*undo_cwnd)(struct sock *sk);
};

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

// Whether `a` is at or after `b` in the sequence space.
static __always_inline _Bool not_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) >= 0;
}
