// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The bypass of a cable between two interfaces: while the process that forwards its frames is dead or hangs,
// a program at each interface sends them straight out of the other one.
//
// The process writes a beat. Its packet sockets get a frame before the programs at the interface do, so the
// sockets' filter decides who forwards it, and leaves the verdict to the program at the interface, which
// runs next on the same CPU. So each frame has one way: what the bypass forwards never reaches the socket's
// queue. Without a verdict there is no socket: the process has died. The same verdict serves the fast path
// (fast_path.h), by which some frames go straight across while the process lives.
#include "fast_path.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A process whose last beat is older does not forward.
#define STALE_NS 100000000ULL
// The process forwards again after this many beats.
#define BEATS 10

struct cable {
	// The process's: when it last beat, on CLOCK_MONOTONIC, and how often.
	__u64 beat_at;
	__u64 beats;
	// Whether the bypass forwards, and after how many beats the process does.
	__u64 is_bypassed;
	__u64 resumes_at;
	// How often the bypass began, when it last did, and the frames that it forwarded.
	__u64 times;
	__u64 since;
	__u64 frames;
	// The interfaces' indices.
	__u32 ends[2];
	// For the next process: see `Word` of crates/enforce/src/bypass.
	__u64 notes[7];
	// Whether frames that the process would forward unchanged go straight across.
	__u64 has_fast_path;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cable);
} weir_cable SEC(".maps");

// The verdict on the frame that this CPU handles.
enum { NONE = 0, PROCESS = 1, BYPASS = 2, FAST_PATH = 3 };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} verdicts SEC(".maps");

static __always_inline __u32 begin_bypass(struct cable *cable, __u64 now, __u64 beats)
{
	// First, so that no other CPU ends what begins here by an earlier count.
	*(volatile __u64 *)&cable->resumes_at = beats + BEATS;
	if (!__sync_val_compare_and_swap(&cable->is_bypassed, 0, 1)) {
		__sync_fetch_and_add(&cable->times, 1);
		cable->since = now;
	}
	return BYPASS;
}

static __always_inline __u32 decide(struct cable *cable, __u64 now)
{
	__u64 beats = *(volatile __u64 *)&cable->beats;
	__u64 beat_at = *(volatile __u64 *)&cable->beat_at;

	// The beat may be newer than `now`.
	if ((__s64)(now - beat_at) >= (__s64)STALE_NS)
		return begin_bypass(cable, now, beats);
	if (!*(volatile __u64 *)&cable->is_bypassed)
		return PROCESS;
	if ((__s64)(beats - *(volatile __u64 *)&cable->resumes_at) < 0)
		return BYPASS;
	__sync_val_compare_and_swap(&cable->is_bypassed, 1, 0);
	return PROCESS;
}

// The filter of the process's packet sockets: only frames that the process forwards get into its queue.
SEC("socket")
int weir_filter(struct __sk_buff *skb)
{
	__u32 first = 0, *verdict = bpf_map_lookup_elem(&verdicts, &first);
	struct cable *cable = bpf_map_lookup_elem(&weir_cable, &first);
	__u64 now = bpf_ktime_get_ns();

	if (!verdict || !cable)
		return -1;
	*verdict = decide(cable, now);
	if (cable->has_fast_path && is_forwarded(skb, skb->ifindex != cable->ends[0], now))
		*verdict = FAST_PATH;
	// The number of bytes that the socket gets.
	return *verdict == PROCESS ? -1 : 0;
}

SEC("tcx/ingress")
int weir_bypass(struct __sk_buff *skb)
{
	__u32 first = 0, taken, *verdict = bpf_map_lookup_elem(&verdicts, &first);
	struct cable *cable = bpf_map_lookup_elem(&weir_cable, &first);

	if (!verdict || !cable)
		return NEXT;
	taken = *verdict;
	*verdict = NONE;
	if (taken == NONE)
		taken = begin_bypass(cable, bpf_ktime_get_ns(), *(volatile __u64 *)&cable->beats);
	if (taken == PROCESS)
		return NEXT;
	if (taken == BYPASS)
		__sync_fetch_and_add(&cable->frames, 1);
	// Super-packets leave whole, and unfinished checksums stay so: the interface finishes both.
	return bpf_redirect(cable->ends[skb->ifindex == cable->ends[0]], 0);
}
