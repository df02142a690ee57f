// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The congestion controls for the kernel's TCP: their entry points. The loader creates one of the two
// and sets its name.

#include "dctcp.h"
#include "d2tcp.h"

// The kernel exports its own functions, such as Reno's growth, only to GPL-compatible programs.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops")
void BPF_PROG(begin, struct sock *sk)
{
	dctcp_begin(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	return dctcp_reduce(sk, dctcp_state(sk)->alpha);
}

SEC("struct_ops")
__u32 BPF_PROG(d2tcp_ssthresh, struct sock *sk)
{
	return dctcp_reduce(sk, d2tcp_penalty(sk));
}

SEC("struct_ops")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(entered, struct sock *sk, __u8 new_state)
{
	dctcp_entered(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(happened, struct sock *sk, enum tcp_ca_event event)
{
	dctcp_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(acknowledged, struct sock *sk, __u32 flags)
{
	dctcp_acknowledged(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(undone, struct sock *sk)
{
	return dctcp_undone(sk);
}

// NON_RESTRICTED: required for use as a namespace's default.
SEC(".struct_ops.link")
struct tcp_congestion_ops dctcp = {
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	.init = (void *)begin,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)avoid,
	.set_state = (void *)entered,
	.cwnd_event = (void *)happened,
	.in_ack_event = (void *)acknowledged,
	.undo_cwnd = (void *)undone,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops d2tcp = {
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	.init = (void *)begin,
	.ssthresh = (void *)d2tcp_ssthresh,
	.cong_avoid = (void *)avoid,
	.set_state = (void *)entered,
	.cwnd_event = (void *)happened,
	.in_ack_event = (void *)acknowledged,
	.undo_cwnd = (void *)undone,
};
