// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Makes the kernel's TCP a sender that ignores its window: at the ingress of its interface, ACKs from port 5201
// get the largest window field, whatever the network has made of it. sed_network.py attaches it.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>

#define IGNORED_PORT 5201
#define LARGEST 0xffff

// The kernel's helper functions, by their numbers: libbpf's headers are not needed for three of them.
static long (*const store_bytes)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static long (*const load_bytes)(const void *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static long (*const replace_in_checksum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l4_csum_replace;

__attribute__((section("tc"), used))
int ignore_window(struct __sk_buff *skb)
{
	struct iphdr ip;
	struct tcphdr tcp;
	const __u32 ip_at = ETH_HLEN, tcp_at = ETH_HLEN + sizeof(ip);
	const __be16 largest = LARGEST;

	if (skb->protocol != __constant_htons(ETH_P_IP) || load_bytes(skb, ip_at, &ip, sizeof(ip)) || ip.ihl != 5 ||
	    ip.protocol != IPPROTO_TCP || load_bytes(skb, tcp_at, &tcp, sizeof(tcp)) ||
	    tcp.source != __constant_htons(IGNORED_PORT) || tcp.syn)
		return TC_ACT_OK;
	replace_in_checksum(skb, tcp_at + offsetof(struct tcphdr, check), tcp.window, largest, sizeof(largest));
	store_bytes(skb, tcp_at + offsetof(struct tcphdr, window), &largest, sizeof(largest), 0);
	return TC_ACT_OK;
}

__attribute__((section("license"), used))
char LICENSE[] = "Dual MIT/GPL";
