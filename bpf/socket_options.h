// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Sets what a rule says in a socket, keeps what it had before, and puts that back.
#pragma once

#include "socket_flow.h"

// What a rule may set, as bits.
enum option {
	CONGESTION = 1,
	WINDOW = 2,
	RATE = 4,
	MIN_RTO = 8,
	ACK_DELAY = 16,
	CLASS = 32,
	INITIAL_WINDOW = 64,
};
enum { OPTIONS = 7 };

// What became of the sockets of a rule.
struct counts {
	__u64 matched;
	__u64 applied;
	__u64 without_ecn;
	__u64 overridden;
	__u64 undone;
	__u64 not_undone;
	// By option.
	__u64 refused[OPTIONS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_SLOTS);
	__type(key, __u32);
	__type(value, struct counts);
} counters SEC(".maps");

// A socket that a rule matches.
struct treatment {
	__u32 slot;
	// Options that were set, and those of which the application had the last word.
	__u32 set;
	__u32 overridden;
	__u32 is_without_ecn;
	// It is left alone, for comparison.
	__u32 is_control;
	// Before; `rate` of no limit is `UNLIMITED`, times are in ticks.
	__u32 window;
	__u32 rate;
	__u32 min_rto;
	__u32 max_ack_delay;
	__u32 class;
	char before[NAME_LENGTH];
	// The algorithm that was set, and the one that the application asked for later.
	char now[NAME_LENGTH];
	char asked[NAME_LENGTH];
	// Of a measured connection: its cookie, when it came to its rule and was last told of, and what it had
	// done before.
	__u64 connection;
	__u64 since;
	__u64 told_at;
	__u64 delivered;
	__u32 segments_sent;
	__u32 retransmitted;
	__u32 is_measured;
	__u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct treatment);
} sockets SEC(".maps");

static __always_inline int same_name(const char *one, const char *other)
{
	__u64 a[2], b[2];

	__builtin_memcpy(a, one, sizeof(a));
	__builtin_memcpy(b, other, sizeof(b));
	return a[0] == b[0] && a[1] == b[1];
}

static __always_inline int set_number(void *context, int level, int name, __u32 value)
{
	return bpf_setsockopt(context, level, name, &value, sizeof(value));
}

// Notes that an option was set, or that the kernel refused it; returns whether it was set.
static __always_inline int note(struct treatment *treatment, struct counts *counts, __u32 index, int failed)
{
	if (failed) {
		counts->refused[index]++;
		return 0;
	}
	treatment->set |= 1U << index;
	return 1;
}

static __always_inline int has_ecn(const struct tcp_sock *tcp)
{
	return tcp->ecn_flags & (TCP_ECN_MODE_RFC3168 | TCP_ECN_MODE_ACCECN);
}

// Reads the name of a socket's algorithm; returns whether it has one. An option of the socket would tell it too, but
// takes longer.
static __always_inline int read_congestion(const struct tcp_sock *tcp, char *name)
{
	const struct tcp_congestion_ops *algorithm = tcp->inet_conn.icsk_ca_ops;

	if (!algorithm)
		return 0;
	return !bpf_probe_read_kernel(name, NAME_LENGTH, algorithm->name);
}

// DCTCP without ECN would be blind to congestion: such a socket gets Reno, as in Linux's own DCTCP. The
// programs of the algorithm cannot do that here, as the kernel refuses a change within a change.
static __always_inline int set_congestion(void *context, const struct tcp_sock *tcp, const struct rule *rule,
					  struct treatment *treatment, struct counts *counts)
{
	if (rule->needs_ecn && !has_ecn(tcp)) {
		__builtin_memcpy(treatment->now, "reno\0\0\0\0\0\0\0\0\0\0\0", NAME_LENGTH);
		treatment->is_without_ecn = 1;
		counts->without_ecn++;
	} else {
		__builtin_memcpy(treatment->now, rule->congestion, NAME_LENGTH);
	}
	if (!read_congestion(tcp, treatment->before)) {
		counts->refused[0]++;
		return 0;
	}
	if (same_name(treatment->before, treatment->now))
		return 1;
	return note(treatment, counts, 0,
		    bpf_setsockopt(context, SOL_TCP, TCP_CONGESTION, treatment->now, NAME_LENGTH));
}

static __always_inline int set_initial_window(void *context, const struct tcp_sock *tcp, const struct rule *rule,
					      struct treatment *treatment, struct counts *counts)
{
	if (tcp->snd_cwnd == rule->initial_window)
		return 1;
	return note(treatment, counts, 6, set_number(context, SOL_TCP, TCP_BPF_IW, rule->initial_window));
}

static __always_inline int set_window(void *context, const struct tcp_sock *tcp, const struct rule *rule,
				      struct treatment *treatment, struct counts *counts)
{
	__u32 size = tcp->mss_cache, segments;

	treatment->window = tcp->snd_cwnd_clamp;
	segments = rule->max_window / (size ? size : 1);
	// One would wait for a delayed acknowledgment each time.
	if (segments < 2)
		segments = 2;
	if (segments >= treatment->window)
		return 1;
	return note(treatment, counts, 1, set_number(context, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, segments));
}

static __always_inline int set_rate(void *context, const struct sock *sk, const struct rule *rule,
				    struct treatment *treatment, struct counts *counts)
{
	unsigned long rate = sk->sk_max_pacing_rate;

	treatment->rate = rate < UNLIMITED ? rate : UNLIMITED;
	if (rule->max_rate >= treatment->rate)
		return 1;
	return note(treatment, counts, 2, set_number(context, SOL_SOCKET, SO_MAX_PACING_RATE, rule->max_rate));
}

static __always_inline int put_class(void *context, const struct sock *sk, __u32 class)
{
	// Of a stream's class the kernel keeps the two bits of ECN itself.
	if (sk->__sk_common.skc_family == AF_INET6)
		return set_number(context, SOL_IPV6, IPV6_TCLASS, class);
	return set_number(context, SOL_IP, IP_TOS, class);
}

// IPv4 on a socket for IPv6 takes its class from a part of the socket that programs cannot set.
static __always_inline int set_class(void *context, const struct tcp_sock *tcp, const struct rule *rule,
				     const struct flow *flow, struct treatment *treatment, struct counts *counts)
{
	const struct inet_sock *inet = &tcp->inet_conn.icsk_inet;

	treatment->class = class_of(inet);
	if (inet->sk.__sk_common.skc_family == AF_INET6 && flow->is_ipv4)
		return note(treatment, counts, 5, 1);
	return note(treatment, counts, 5, put_class(context, &inet->sk, (__u32)(rule->set_dscp - 1) << 2));
}

// Sets what the rule says, but for the options of which the application had the last word. The initial window
// is only for a new connection.
static __always_inline void apply(void *context, const struct tcp_sock *tcp, const struct rule *rule,
				  const struct flow *flow, struct treatment *treatment, struct counts *counts,
				  int is_new)
{
	const struct inet_connection_sock *connection = &tcp->inet_conn;
	__u32 overridden = treatment->overridden;
	int all = 1;

	// Before the algorithm begins, which may look at it.
	if (rule->initial_window && is_new)
		all &= set_initial_window(context, tcp, rule, treatment, counts);
	if (rule->max_window)
		all &= set_window(context, tcp, rule, treatment, counts);
	if (!(overridden & CONGESTION))
		all &= set_congestion(context, tcp, rule, treatment, counts);
	if (rule->max_rate && !(overridden & RATE))
		all &= set_rate(context, &connection->icsk_inet.sk, rule, treatment, counts);
	if (rule->min_rto && !(overridden & MIN_RTO)) {
		treatment->min_rto = connection->icsk_rto_min;
		all &= note(treatment, counts, 3, set_number(context, SOL_TCP, TCP_BPF_RTO_MIN, rule->min_rto));
	}
	if (rule->max_ack_delay && !(overridden & ACK_DELAY)) {
		treatment->max_ack_delay = connection->icsk_delack_max;
		all &= note(treatment, counts, 4,
			    set_number(context, SOL_TCP, TCP_BPF_DELACK_MAX, rule->max_ack_delay));
	}
	if (rule->set_dscp && !(overridden & CLASS))
		all &= set_class(context, tcp, rule, flow, treatment, counts);
	counts->applied += all;
}

// Whether the algorithm is still the one that was set, and not the application's choice.
static __always_inline int is_ours(const struct tcp_sock *tcp, const struct treatment *treatment)
{
	char current[NAME_LENGTH] = {};

	if (!read_congestion(tcp, current))
		return 0;
	// What it has asked for and not got is not its choice.
	if (treatment->overridden & CONGESTION && same_name(current, treatment->asked))
		return 0;
	return same_name(current, treatment->now);
}

// Puts back what the socket had before, but where the application had the last word.
static __always_inline void put_back(void *context, const struct tcp_sock *tcp, struct treatment *treatment,
				     struct counts *counts)
{
	__u32 set = treatment->set & ~(treatment->overridden & ~CONGESTION), value;
	int failed = 0;

	if (set & CONGESTION && is_ours(tcp, treatment))
		failed |= bpf_setsockopt(context, SOL_TCP, TCP_CONGESTION, treatment->before, NAME_LENGTH);
	if (set & WINDOW) {
		value = treatment->window < LARGEST_INT ? treatment->window : LARGEST_INT;
		failed |= set_number(context, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, value);
	}
	if (set & RATE)
		failed |= set_number(context, SOL_SOCKET, SO_MAX_PACING_RATE, treatment->rate);
	if (set & MIN_RTO)
		failed |= set_number(context, SOL_TCP, TCP_BPF_RTO_MIN, treatment->min_rto * constants.tick);
	if (set & ACK_DELAY)
		failed |= set_number(context, SOL_TCP, TCP_BPF_DELACK_MAX,
				     treatment->max_ack_delay * constants.tick);
	if (set & CLASS)
		failed |= put_class(context, &tcp->inet_conn.icsk_inet.sk, treatment->class);
	if (failed)
		counts->not_undone++;
	else
		counts->undone++;
}
