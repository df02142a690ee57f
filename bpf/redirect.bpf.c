// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Redirects TCP connections of a control group's processes to a listener on loopback, and keeps where they were to go:
// the listener's process looks that up by the connection's source, and the application's getpeername(2) returns it.
//
// connect(2) writes the original destination into the socket's storage; when the SYN leaves, and the socket has
// its port, it is told in the table `originals`. Nothing is pinned: all ends with the process that has loaded it.

#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { CONNECTS = 3, IPPROTO_TCP = 6, BPF_MAP_TYPE_HASH = 1, MOST_TARGETS = 64 };
// ::ffff:0:0/96, as the third word in memory.
#define MAPPED bpf_htonl(0xffff)

// From linux/bpf.h.
struct bpf_sock_addr {
	__u32 user_family;
	__u32 user_ip4;
	__u32 user_ip6[4];
	__u32 user_port;
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 msg_src_ip4;
	__u32 msg_src_ip6[4];
	struct bpf_sock *sk;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	__u32 inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct___redirect {
	struct task_struct___redirect *group_leader;
	struct pid *thread_pid;
};

#pragma clang attribute pop

// An address and a port; the words of the address are in network byte order, IPv4 is mapped.
struct endpoint {
	__u32 address[4];
	// In the host's byte order.
	__u32 port;
};

// Destinations that are redirected, or are left alone. The words are in network byte order.
struct target {
	__u32 bits[4];
	__u32 mask[4];
	__u16 first_port;
	__u16 last_port;
	__u8 is_ipv4;
	__u8 redirects;
	__u16 padding;
};

struct constants {
	// The network namespace of the listener, whose loopback it is on.
	__u64 network;
	// The process of the listener, and the PID namespace in which it has this number.
	__u32 pid_namespace;
	__u32 process;
	// The listeners' ports in network byte order; 0 for none.
	__u32 port4;
	__u32 port6;
	__u32 count;
	struct target targets[MOST_TARGETS];
};

const volatile struct constants constants SEC(".rodata.redirect") = {};

// Where a socket was to connect to; `is_redirected` is 0 after a connection that was left alone.
struct original {
	struct endpoint to;
	__u32 is_redirected;
	__u32 is_ipv4;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct original);
} sockets SEC(".maps");

// Original destinations by the source of the connection to the listener, which takes them out. Those of
// connections that it never accepts give way to others.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct endpoint);
	__type(value, struct endpoint);
} originals SEC(".maps");

// Returns whether the process that connects is the listener's own.
static __always_inline int is_own(void)
{
	struct task_struct___redirect *task = (void *)bpf_get_current_task_btf();
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid *number = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			      level * bpf_core_type_size(struct upid);

	return (__u32)BPF_CORE_READ(number, nr) == constants.process &&
	       BPF_CORE_READ(number, ns, ns.inum) == constants.pid_namespace;
}

static __always_inline int is_mapped(const __u32 *address)
{
	return !address[0] && !address[1] && address[2] == MAPPED;
}

// Whether an address is a loopback address or the unspecified one, which connects to this machine as well.
static __always_inline int is_loopback(const __u32 *address, int is_ipv4)
{
	if (is_ipv4)
		return (address[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000) || !address[3];
	return !address[0] && !address[1] && !address[2] && (!address[3] || address[3] == bpf_htonl(1));
}

static __always_inline int matches(const volatile struct target *target, const struct endpoint *to, int is_ipv4)
{
	return target->is_ipv4 == is_ipv4 && to->port >= target->first_port && to->port <= target->last_port &&
	       !((to->address[0] ^ target->bits[0]) & target->mask[0]) &&
	       !((to->address[1] ^ target->bits[1]) & target->mask[1]) &&
	       !((to->address[2] ^ target->bits[2]) & target->mask[2]) &&
	       !((to->address[3] ^ target->bits[3]) & target->mask[3]);
}

// Returns whether connections to a destination are redirected: the first match decides.
static __always_inline int is_target(const struct endpoint *to, int is_ipv4)
{
	for (__u32 i = 0; i < MOST_TARGETS && i < constants.count; i++) {
		if (matches(&constants.targets[i], to, is_ipv4))
			return constants.targets[i].redirects;
	}
	return 0;
}

// Notes the destination of a socket; returns whether the connection is redirected.
static __always_inline int note(struct bpf_sock_addr *context, const struct endpoint *to, int is_ipv4)
{
	struct bpf_sock *sk = context->sk;
	struct original *original;
	int redirects;

	if (context->type != STREAM || context->protocol != IPPROTO_TCP || !sk)
		return 0;
	// A socket at an interface does not reach loopback.
	redirects = !sk->bound_dev_if && (is_ipv4 ? constants.port4 : constants.port6) &&
		    !is_loopback(to->address, is_ipv4) && bpf_get_netns_cookie(context) == constants.network &&
		    is_target(to, is_ipv4) && !is_own();
	original = bpf_sk_storage_get(&sockets, sk, 0, redirects ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!original)
		return 0;
	original->is_redirected = redirects;
	original->is_ipv4 = is_ipv4;
	original->to = *to;
	return redirects;
}

SEC("cgroup/connect4")
int connects4(struct bpf_sock_addr *context)
{
	struct endpoint to = { { 0, 0, MAPPED, context->user_ip4 }, bpf_ntohs(context->user_port) };

	if (note(context, &to, 1)) {
		context->user_ip4 = bpf_htonl(0x7f000001);
		context->user_port = constants.port4;
	}
	return 1;
}

SEC("cgroup/connect6")
int connects6(struct bpf_sock_addr *context)
{
	struct endpoint to = { { context->user_ip6[0], context->user_ip6[1], context->user_ip6[2],
				 context->user_ip6[3] },
			       bpf_ntohs(context->user_port) };
	int is_ipv4 = is_mapped(to.address);

	if (!note(context, &to, is_ipv4))
		return 1;
	if (is_ipv4) {
		context->user_ip6[3] = bpf_htonl(0x7f000001);
		context->user_port = constants.port4;
	} else {
		context->user_ip6[0] = 0;
		context->user_ip6[1] = 0;
		context->user_ip6[2] = 0;
		context->user_ip6[3] = bpf_htonl(1);
		context->user_port = constants.port6;
	}
	return 1;
}

SEC("sockops")
int connection_begins(struct bpf_sock_ops *ops)
{
	struct endpoint from = {};
	struct original *original;
	struct endpoint to;
	struct bpf_sock *sk;
	__u32 ipv4, ipv6[4];

	if (ops->op != CONNECTS)
		return 1;
	ipv4 = ops->local_ip4;
	ipv6[0] = ops->local_ip6[0];
	ipv6[1] = ops->local_ip6[1];
	ipv6[2] = ops->local_ip6[2];
	ipv6[3] = ops->local_ip6[3];
	// The compiler would make one load of several in branches, from an address that the verifier does not take.
	barrier_var(ipv4);
	barrier_var(ipv6[0]);
	barrier_var(ipv6[1]);
	barrier_var(ipv6[2]);
	barrier_var(ipv6[3]);
	sk = ops->sk;
	if (!sk)
		return 1;
	original = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!original || !original->is_redirected)
		return 1;
	if (original->is_ipv4) {
		from.address[2] = MAPPED;
		from.address[3] = ipv4;
	} else {
		from.address[0] = ipv6[0];
		from.address[1] = ipv6[1];
		from.address[2] = ipv6[2];
		from.address[3] = ipv6[3];
	}
	from.port = ops->local_port;
	to = original->to;
	bpf_map_update_elem(&originals, &from, &to, 0);
	return 1;
}

static __always_inline struct original *redirected(struct bpf_sock_addr *context)
{
	struct bpf_sock *sk = context->sk;
	struct original *original;

	if (!sk)
		return 0;
	original = bpf_sk_storage_get(&sockets, sk, 0, 0);
	return original && original->is_redirected ? original : 0;
}

SEC("cgroup/getpeername4")
int peer_name4(struct bpf_sock_addr *context)
{
	struct original *original = redirected(context);

	if (original) {
		context->user_ip4 = original->to.address[3];
		context->user_port = bpf_htons(original->to.port);
	}
	return 1;
}

SEC("cgroup/getpeername6")
int peer_name6(struct bpf_sock_addr *context)
{
	struct original *original = redirected(context);

	if (original) {
		context->user_ip6[0] = original->to.address[0];
		context->user_ip6[1] = original->to.address[1];
		context->user_ip6[2] = original->to.address[2];
		context->user_ip6[3] = original->to.address[3];
		context->user_port = bpf_htons(original->to.port);
	}
	return 1;
}
