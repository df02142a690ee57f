// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// DCTCP for the kernel's TCP (RFC 8257): the part that D2TCP shares.
//
// The sender estimates alpha, the fraction of its packets that were marked, once per window of
// data. TCP itself enters CWR on the first ECE of a round trip and calls `ssthresh` for the reduced
// window. There is no second reduction before that data is acknowledged.
//
// The receiver echoes the marks exactly although it delays acknowledgments (RFC 8257, section 3.2):
// when an arriving packet differs in CE from the previous one, pending data are acknowledged at
// once with the old state. Each acknowledgment carries the state of all the packets it covers.
#pragma once

#include "kernel.h"
#include "fraction.h"

// Written by the loader before the program is loaded.
struct parameters {
	__u32 g;
	__u32 initial_alpha;
	__u32 min_window;
};

const volatile struct parameters parameters = { ONE / 16, ONE, 2 };

// Readable by the process that owns the socket.
struct observation {
	__u32 alpha;
	__u32 windows;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct observation);
} observations SEC(".maps");

struct dctcp {
	__u32 alpha;
	// The end of the window of data for the next update of alpha.
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	// Receiver: CE of the newest packet, and rcv_nxt before it.
	__u32 ce;
	__u32 rcv_nxt;
	// cwnd before the latest reduction.
	__u32 loss_cwnd;
	// The last value of `ssthresh`.
	__u32 ssthresh;
};

_Static_assert(sizeof(struct dctcp) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "the state has to fit into the socket");

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static __always_inline struct dctcp *dctcp_state(struct sock *sk)
{
	return (struct dctcp *)inet_csk(sk)->icsk_ca_priv;
}

// Linux 6.18 has been seen to skip the program for a series of acknowledgments after the thread that
// holds the socket was preempted. It then uses the lower half of a kernel address, from 0x81000000,
// as the program's result. TCP has no threshold above its infinity, so no valid value is mistaken
// for it.
static __always_inline void repair(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 ssthresh = dctcp_state(sk)->ssthresh;

	if (tp->snd_ssthresh <= TCP_INFINITE_SSTHRESH && tp->snd_cwnd <= TCP_INFINITE_SSTHRESH)
		return;
	if (ssthresh < parameters.min_window)
		ssthresh = parameters.min_window;
	tp->snd_ssthresh = ssthresh;
	if (tp->snd_cwnd > ssthresh)
		tp->snd_cwnd = ssthresh;
}

static __always_inline void begin_window(struct dctcp *state, struct tcp_sock *tp)
{
	state->window_end = tp->snd_nxt;
	state->delivered = tp->delivered;
	state->delivered_ce = tp->delivered_ce;
}

// A peer without ECN gets conventional TCP (RFC 8257, section 3.1 requires ECN negotiation for DCTCP):
// Reno, without the ECT code points that DCTCP needs.
static __always_inline void dctcp_begin(struct sock *sk)
{
	struct dctcp *state = dctcp_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!(tp->ecn_flags & (TCP_ECN_MODE_RFC3168 | TCP_ECN_MODE_ACCECN))) {
		char reno[] = "reno";

		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
		return;
	}
	state->alpha = parameters.initial_alpha;
	state->ce = 0;
	state->rcv_nxt = tp->rcv_nxt;
	state->loss_cwnd = 0;
	state->ssthresh = tp->snd_cwnd;
	begin_window(state, tp);
}

static __always_inline void publish(struct sock *sk, __u32 alpha)
{
	struct observation *seen;

	seen = bpf_sk_storage_get(&observations, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!seen)
		return;
	seen->alpha = alpha;
	seen->windows++;
}

static __always_inline void dctcp_acknowledged(struct sock *sk)
{
	struct dctcp *state = dctcp_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	repair(sk);
	if (!not_before(tp->snd_una, state->window_end))
		return;
	state->alpha = next_alpha(state->alpha, parameters.g, tp->delivered - state->delivered,
				  tp->delivered_ce - state->delivered_ce);
	begin_window(state, tp);
	publish(sk, state->alpha);
}

static __always_inline __u32 dctcp_reduce(struct sock *sk, __u32 penalty)
{
	struct dctcp *state = dctcp_state(sk);
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;

	state->loss_cwnd = cwnd;
	state->ssthresh = reduced(cwnd, penalty, parameters.min_window);
	return state->ssthresh;
}

// A loss halves the window, whatever alpha is (RFC 8257, section 3.5).
static __always_inline void dctcp_lost(struct sock *sk)
{
	tcp_sk(sk)->snd_ssthresh = dctcp_reduce(sk, ONE);
}

static __always_inline void dctcp_entered(struct sock *sk, __u8 new_state)
{
	__u8 recovery = bpf_core_enum_value(enum tcp_ca_state, TCP_CA_Recovery);

	repair(sk);
	if (new_state == recovery &&
	    BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state) != recovery)
		dctcp_lost(sk);
}

// Sets the ECN echo of the next acknowledgments.
static __always_inline void echo(struct tcp_sock *tp, __u32 ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static __always_inline void dctcp_arrived(struct sock *sk, __u32 ce)
{
	__u8 timer = bpf_core_enum_value(enum inet_csk_ack_state_t, ICSK_ACK_TIMER);
	__u8 now = bpf_core_enum_value(enum inet_csk_ack_state_t, ICSK_ACK_NOW);
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct dctcp *state = dctcp_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (state->ce != ce) {
		if (icsk->icsk_ack.pending & timer) {
			echo(tp, state->ce);
			bpf_tcp_send_ack(tp, state->rcv_nxt);
		}
		icsk->icsk_ack.pending |= now;
	}
	state->rcv_nxt = tp->rcv_nxt;
	state->ce = ce;
	echo(tp, ce);
}

static __always_inline void dctcp_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_ECN_IS_CE))
		dctcp_arrived(sk, 1);
	else if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_ECN_NO_CE))
		dctcp_arrived(sk, 0);
	else if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_LOSS))
		dctcp_lost(sk);
}

// Undoes the reduction after a spurious loss.
static __always_inline __u32 dctcp_undone(struct sock *sk)
{
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;
	__u32 before = dctcp_state(sk)->loss_cwnd;

	return cwnd > before ? cwnd : before;
}
