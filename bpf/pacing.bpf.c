// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Paces the sockets of this machine whose flow has a highest rate: TCP's own pacing (SO_MAX_PACING_RATE),
// which needs no fq. The programs at interfaces (enforce.bpf.c) follow the flows; this one finds a socket's
// flow in their maps by its addresses, once per round trip.
//
// Only sockets of the interfaces' network namespace count, because others can have the same addresses. A
// socket that the application paces more slowly is left at that rate. When the cap expires, the socket gets
// its own rate back. `restore` does so for all sockets when user space ends. After a kill it cannot run:
// then `restore_stale` does it at the next start, by the flags that are left in the sockets.

#include "sock_ops.h"
#include "tables.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// From linux/bpf.h.
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };

// From linux/socket.h, asm-generic/socket.h and linux/bpf.h.
enum { INET = 2, INET6 = 10, SOCKET = 1, TCP = 6, MAX_PACING_RATE = 47, CALLBACK_FLAGS = 1008 };

// The callbacks of a socket that may have a rate. Only that of RTT samples is used; the combination
// is for recognizing such a socket.
enum { FLAGS = RTT_FLAG | RTO_FLAG | STATE_FLAG };

#define UNLIMITED (~0U)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_max_pacing_rate;
};

struct inet_connection_sock {
	struct {
		struct sock sk;
	} icsk_inet;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u8 bpf_sock_ops_cb_flags;
};

struct sock_common;

struct bpf_iter__tcp {
	struct sock_common *sk_common;
};

#pragma clang attribute pop

// A paced socket: its own highest rate, and the one that was set.
struct paced {
	__u32 own;
	__u32 set;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct paced);
} sockets SEC(".maps");

static __always_inline void map_ipv4(__u8 *mapped, __u32 address)
{
	__builtin_memset(mapped, 0, 10);
	mapped[10] = 0xff;
	mapped[11] = 0xff;
	__builtin_memcpy(mapped + 12, &address, 4);
}

// Reads the addresses of a socket; returns whether it has any.
static __always_inline int read_key(struct bpf_sock_ops *ops, struct key *key)
{
	__u32 words[2];

	if (ops->family == INET) {
		map_ipv4(key->local, ops->local_ip4);
		map_ipv4(key->remote, ops->remote_ip4);
	} else if (ops->family == INET6) {
		// The context is read a word at a time, which the compiler must not combine.
#pragma clang loop unroll(full)
		for (int i = 0; i < 4; i++) {
			words[0] = *(volatile __u32 *)&ops->local_ip6[i];
			words[1] = *(volatile __u32 *)&ops->remote_ip6[i];
			__builtin_memcpy(key->local + 4 * i, &words[0], 4);
			__builtin_memcpy(key->remote + 4 * i, &words[1], 4);
		}
	} else {
		return 0;
	}
	key->local_port = bpf_htons(ops->local_port);
	key->remote_port = bpf_htons(bpf_ntohl(ops->remote_port));
	return 1;
}

// Sets a socket's highest pacing rate to `rate`, but not above its own.
static __always_inline void pace(struct bpf_sock_ops *ops, __u32 rate)
{
	struct bpf_sock *sk = ops->sk;
	__u32 current = UNLIMITED;
	struct paced *paced;

	if (!sk)
		return;
	paced = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!paced)
		return;
	if (bpf_getsockopt(ops, SOCKET, MAX_PACING_RATE, &current, sizeof(current)))
		current = paced->set ? paced->set : UNLIMITED;
	// Another value than ours is the application's.
	if (current != paced->set)
		paced->own = current;
	if (rate > paced->own)
		rate = paced->own;
	if (rate != current && bpf_setsockopt(ops, SOCKET, MAX_PACING_RATE, &rate, sizeof(rate)))
		return;
	paced->set = rate;
}

// Follows the cap of a socket's flow.
static __always_inline void follow_cap(struct bpf_sock_ops *ops)
{
	struct key key = {};
	struct tracked *tracked;
	struct cap *cap;
	__u64 rate;
	__u32 slot;

	if (!read_key(ops, &key))
		return;
	tracked = bpf_map_lookup_elem(&flows, &key);
	if (!tracked) {
		// It was left alone, or leaves by another interface.
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~FLAGS);
		return;
	}
	slot = tracked->slot;
	cap = bpf_map_lookup_elem(&caps, &slot);
	if (!cap || !cap->expires_at)
		return;
	rate = cap->socket_rate;
	if (!rate) {
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~FLAGS);
		return;
	}
	if (!holds_rate(cap, bpf_ktime_get_ns())) {
		if (cap->is_socket_paced)
			pace(ops, UNLIMITED);
		cap->is_socket_paced = 0;
		return;
	}
	pace(ops, rate < UNLIMITED ? rate : UNLIMITED - 1);
	cap->is_socket_paced = 1;
}

SEC("sockops")
int socket_event(struct bpf_sock_ops *ops)
{
	__u32 first = 0, op = ops->op;
	struct settings *set;

	if (op != ACTIVE_ESTABLISHED && op != PASSIVE_ESTABLISHED && op != RTT_SAMPLE)
		return 1;
	set = bpf_map_lookup_elem(&settings, &first);
	if (!set || bpf_get_netns_cookie(ops) != set->netns_cookie)
		return 1;
	if (op == RTT_SAMPLE)
		follow_cap(ops);
	else if (set->has_rates)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | FLAGS);
	return 1;
}

// Sets a socket's highest pacing rate, and stops its callbacks (Linux 6.12).
static __always_inline void leave(struct tcp_sock *tcp, __u32 rate)
{
	int flags = tcp->bpf_sock_ops_cb_flags & ~FLAGS;

	bpf_setsockopt(tcp, SOCKET, MAX_PACING_RATE, &rate, sizeof(rate));
	bpf_setsockopt(tcp, TCP, CALLBACK_FLAGS, &flags, sizeof(flags));
}

SEC("iter/tcp")
int restore(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct tcp_sock *tcp;
	struct paced *paced;

	if (!common)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return 0;
	paced = bpf_sk_storage_get(&sockets, tcp, 0, 0);
	if (paced)
		leave(tcp, paced->own);
	return 0;
}

SEC("iter/tcp")
int restore_stale(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct tcp_sock *tcp;

	if (!common)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (tcp && (tcp->bpf_sock_ops_cb_flags & FLAGS) == FLAGS)
		leave(tcp, UNLIMITED);
	return 0;
}
