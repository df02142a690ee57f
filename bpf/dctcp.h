// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// DCTCP for the kernel's TCP (RFC 8257), the part that D2TCP has in common with it.
//
// The sender estimates alpha, the fraction of its packets that met a mark, once in each window of
// data. TCP itself enters CWR on the first ECE of a round trip and asks `ssthresh` how far to go
// down: there is no second reduction before that data is acknowledged.
//
// The receiver tells the marks exactly although it delays acknowledgments (RFC 8257, section 3.2):
// when an arriving packet differs in CE from the one before, what is pending is acknowledged at
// once with the old state; each acknowledgment says the state of all the packets it stands for.
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

// What a process that has the socket can read of it.
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
	// The window of data that alpha's next step is about.
	__u32 window_end;
	__u32 delivered;
	__u32 delivered_ce;
	// The receiver's: CE of the newest packet, and what was in order before it.
	__u32 ce;
	__u32 rcv_nxt;
	// cwnd before the newest reduction.
	__u32 loss_cwnd;
	// What `ssthresh` was last set to.
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

// Linux 6.18 has been seen not to run a program for a stretch of acknowledgments, when the thread
// that holds the socket was preempted: what it then takes for the program's answer is the lower
// half of a kernel address, from 0x81000000. TCP itself knows no threshold above its infinity, so
// that nothing else is mistaken for it.
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

// A peer without ECN gets conventional TCP (RFC 8257, section 3.1 leaves DCTCP to ECN's
// negotiation): Reno, without the ECT code points that DCTCP needs.
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

// What the next acknowledgments echo.
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

// A loss that turned out spurious.
static __always_inline __u32 dctcp_undone(struct sock *sk)
{
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;
	__u32 before = dctcp_state(sk)->loss_cwnd;

	return cwnd > before ? cwnd : before;
}
