// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Marks the first `marked` of each `period` ECN-capable packets that arrive, for the tests.

#include "../../../../bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct marking {
	__u32 period;
	__u32 marked;
	__u32 seen;
};

struct {
	__uint(type, 2); // BPF_MAP_TYPE_ARRAY
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct marking);
} markings SEC(".maps");

SEC("tc")
int mark(struct __sk_buff *skb)
{
	__u32 first = 0;
	struct marking *marking = bpf_map_lookup_elem(&markings, &first);

	if (marking && marking->period && marking->seen++ % marking->period < marking->marked)
		bpf_skb_ecn_set_ce(skb);
	return 0; // TC_ACT_OK
}
