// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// What connections of measured rules have done: a record when one ends, and from time to time while it is
// open.
#pragma once

#include "socket_options.h"

enum { BPF_RB_NO_WAKEUP = 1 };

// The pause between records of an open connection.
#define PAUSE 5000000000ULL

// Numbers begin where the rule was applied to the connection.
struct record {
	__u64 connection;
	// Nanoseconds.
	__u64 duration;
	__u64 delivered;
	// Bytes per second; zero if it is not known, as the times.
	__u64 delivery_rate;
	__u32 slot;
	__u32 is_control;
	__u32 segments_sent;
	__u32 retransmitted;
	// Microseconds.
	__u32 rtt;
	__u32 rtt_min;
	__u32 is_closed;
	__u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

static __always_inline __u64 delivery_rate(const struct tcp_sock *tcp)
{
	__u64 bytes = (__u64)tcp->rate_delivered * tcp->mss_cache;
	__u32 time = tcp->rate_interval_us;

	return time ? bytes * 1000000 / time : 0;
}

static __always_inline __u32 rtt_min(const struct tcp_sock *tcp)
{
	__u32 time = tcp->rtt_min.s[0].v;

	// Before the first sample it is unlimited.
	return time == UNLIMITED ? 0 : time;
}

// Notes where a connection is when it comes to its rule.
static __always_inline void begin_measurement(struct treatment *treatment, const struct tcp_sock *tcp, __u64 cookie)
{
	treatment->connection = cookie;
	treatment->since = bpf_ktime_get_ns();
	treatment->told_at = treatment->since;
	treatment->delivered = tcp->bytes_acked;
	treatment->segments_sent = tcp->data_segs_out;
	treatment->retransmitted = tcp->total_retrans;
	treatment->is_measured = 1;
}

// Tells user space, which looks often enough without being woken.
static __always_inline void tell(struct treatment *treatment, const struct tcp_sock *tcp, __u64 now, int is_closed)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record)
		return;
	record->connection = treatment->connection;
	record->duration = now - treatment->since;
	record->delivered = tcp->bytes_acked - treatment->delivered;
	record->delivery_rate = delivery_rate(tcp);
	record->slot = treatment->slot;
	record->is_control = treatment->is_control;
	record->segments_sent = tcp->data_segs_out - treatment->segments_sent;
	record->retransmitted = tcp->total_retrans - treatment->retransmitted;
	record->rtt = tcp->srtt_us >> 3;
	record->rtt_min = rtt_min(tcp);
	record->is_closed = is_closed;
	record->padding = 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	treatment->told_at = now;
}
