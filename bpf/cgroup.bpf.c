// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Gives the TCP sockets of a control group, new or open already, what the first matching rule of a policy says,
// and puts back what they had. No packet is touched: the programs run when a connection is established.

#include "socket_records.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// One version of the policy; user space puts another in its place at once.
struct version {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ruleset);
} none SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct version);
} policy SEC(".maps") = { .values = { [0] = &none } };

// Sockets that belong to a rule now.
struct population {
	__u64 treated;
	__u64 control;
	__u64 without_ecn;
	__u64 overridden;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_SLOTS);
	__type(key, __u32);
	__type(value, struct population);
} populations SEC(".maps");

static __always_inline const struct ruleset *rules(void)
{
	__u32 first = 0;
	void *version = bpf_map_lookup_elem(&policy, &first);

	return version ? bpf_map_lookup_elem(version, &first) : 0;
}

// Finds the rule for a socket's data.
static __always_inline const struct rule *find_rule(const struct ruleset *set, struct flow *flow,
						    struct tcp_sock *tcp)
{
	if (!read_flow(flow, tcp))
		return 0;
	if (set->has_groups)
		read_groups(flow, &tcp->inet_conn.icsk_inet.sk);
	if (set->has_owners)
		use_owner(flow, bpf_sk_storage_get(&owners, tcp, 0, 0));
	return first_match(set, flow);
}

static __always_inline void set_callbacks(void *context, const struct tcp_sock *tcp, int is_measured)
{
	__u32 flags = tcp->bpf_sock_ops_cb_flags & ~STATE_FLAG;

	set_number(context, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, is_measured ? flags | STATE_FLAG : flags);
}

// Returns whether a socket of a rule is measured at most.
static __always_inline int is_left_alone(const struct rule *rule, const struct flow *flow)
{
	return rule->passes || is_control(rule, flow);
}

// Keeps that a socket belongs to a rule, and sets what the rule says. `overridden` are the options of
// which its application had the last word before.
static __always_inline void treat(void *context, struct tcp_sock *tcp, const struct rule *rule,
				  const struct flow *flow, __u32 overridden, int is_new)
{
	__u32 slot = rule->slot;
	struct counts *counts = bpf_map_lookup_elem(&counters, &slot);
	struct treatment *treatment;

	if (!counts)
		return;
	counts->matched++;
	if (rule->passes && !rule->measures)
		return;
	treatment = bpf_sk_storage_get(&sockets, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!treatment) {
		counts->refused[0]++;
		return;
	}
	treatment->slot = slot;
	treatment->overridden = overridden;
	treatment->is_control = is_left_alone(rule, flow);
	if (!treatment->is_control && !constants.is_dry_run)
		apply(context, tcp, rule, flow, treatment, counts, is_new);
	if (rule->measures) {
		begin_measurement(treatment, tcp, bpf_get_socket_cookie(context));
		set_callbacks(context, tcp, 1);
	}
}

static __always_inline void established(struct bpf_sock_ops *ops)
{
	const struct ruleset *set = rules();
	struct bpf_sock *sk = ops->sk;
	const struct rule *rule;
	struct flow flow = {};
	struct tcp_sock *tcp;

	if (!set || !sk)
		return;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return;
	rule = find_rule(set, &flow, tcp);
	if (!rule)
		return;
	treat(ops, tcp, rule, &flow, 0, 1);
}

// Tells of a measured connection that ends.
static __always_inline void closed(struct bpf_sock_ops *ops)
{
	struct treatment *treatment;
	struct tcp_sock *tcp;

	if (!ops->sk)
		return;
	tcp = bpf_skc_to_tcp_sock(ops->sk);
	if (!tcp)
		return;
	treatment = bpf_sk_storage_get(&sockets, tcp, 0, 0);
	if (!treatment || !treatment->is_measured)
		return;
	tell(treatment, tcp, bpf_ktime_get_ns(), 1);
	treatment->is_measured = 0;
}

// Reads a request of a connection, which has an address and a listener only.
static __always_inline int read_request(struct flow *flow, const struct ruleset *set, struct bpf_sock_ops *ops)
{
	struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
	const struct sock_common *request = &kernel->sk->__sk_common;
	const struct inet_sock *listener;
	__u64 cookie = 0;

	flow->user = NO_USER;
	if (!read_addresses(flow, request) ||
	    bpf_probe_read_kernel(&listener, sizeof(listener), &request->skc_listener))
		return 0;
	listener = bpf_rdonly_cast(listener, bpf_core_type_id_kernel(struct inet_sock));
	flow->dscp = class_of(listener) >> 2;
	if (set->has_groups)
		read_groups(flow, &listener->sk);
	if (set->has_owners) {
		bpf_probe_read_kernel(&cookie, sizeof(cookie), &listener->sk.__sk_common.skc_cookie.counter);
		use_owner(flow, bpf_map_lookup_elem(&listeners, &cookie));
	}
	return 1;
}

// Returns whether ECN is asked for in a handshake.
static __always_inline int asks_ecn(struct bpf_sock_ops *ops)
{
	const struct ruleset *set = rules();
	const struct rule *rule;
	struct flow flow = {};
	struct tcp_sock *tcp;
	struct bpf_sock *sk;

	if (!set || !set->asks_ecn || constants.is_dry_run)
		return 0;
	sk = ops->sk;
	if (sk) {
		tcp = bpf_skc_to_tcp_sock(sk);
		rule = tcp ? find_rule(set, &flow, tcp) : 0;
	} else {
		rule = read_request(&flow, set, ops) ? first_match(set, &flow) : 0;
	}
	return rule && rule->asks_ecn && !is_control(rule, &flow);
}

// Notes the owner of a listener, for the requests of connections.
static __always_inline void note_listener(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct owner *owner;
	__u64 cookie;

	if (!sk)
		return;
	owner = bpf_sk_storage_get(&owners, sk, 0, 0);
	if (!owner)
		return;
	cookie = bpf_get_socket_cookie(ops);
	bpf_map_update_elem(&listeners, &cookie, owner, 0);
}

SEC("sockops")
int socket_event(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case ACTIVE_ESTABLISHED:
	case PASSIVE_ESTABLISHED:
		established(ops);
		break;
	case NEEDS_ECN:
		if (asks_ecn(ops))
			ops->reply = 1;
		break;
	case STATE_CHANGED:
		if (ops->args[1] == TCP_CLOSE)
			closed(ops);
		break;
	case LISTENS:
		note_listener(ops);
		break;
	}
	return 1;
}

static __always_inline void forget(struct tcp_sock *tcp, struct treatment *treatment, void *context)
{
	__u32 slot = treatment->slot;
	struct counts *counts = bpf_map_lookup_elem(&counters, &slot);

	if (treatment->is_measured)
		set_callbacks(context, tcp, 0);
	if (counts && !treatment->is_control)
		put_back(context, tcp, treatment, counts);
	bpf_sk_storage_delete(&sockets, tcp);
}

// Puts back what a socket had before, if a rule has changed it.
SEC("iter/tcp")
int undo(struct bpf_iter__tcp *context)
{
	const char done = '.';
	struct sock_common *common = context->sk_common;
	struct treatment *treatment;
	struct tcp_sock *tcp;

	if (!common)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return 0;
	treatment = bpf_sk_storage_get(&sockets, tcp, 0, 0);
	if (treatment) {
		forget(tcp, treatment, tcp);
		// The reader counts.
		bpf_seq_write(context->meta->seq, &done, sizeof(done));
	}
	return 0;
}

// Gives an open socket what the rules say, where that is another rule than before.
SEC("iter/tcp")
int reconcile(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	const struct ruleset *set = rules();
	struct treatment *treatment;
	const struct rule *rule;
	struct flow flow = {};
	struct tcp_sock *tcp;
	__u32 overridden = 0;

	if (!common || !set)
		return 0;
	tcp = bpf_skc_to_tcp_sock(common);
	if (!tcp)
		return 0;
	if (!(1U << (common->skc_state & 31) & SENDING))
		return 0;
	read_groups(&flow, &tcp->inet_conn.icsk_inet.sk);
	if (!is_below(&flow, constants.group))
		return 0;
	rule = find_rule(set, &flow, tcp);
	treatment = bpf_sk_storage_get(&sockets, tcp, 0, 0);
	if (treatment) {
		if (rule && (!rule->passes || rule->measures) && treatment->slot == rule->slot &&
		    treatment->is_control == (__u32)is_left_alone(rule, &flow))
			return 0;
		overridden = treatment->overridden;
		forget(tcp, treatment, tcp);
	}
	if (rule)
		treat(tcp, tcp, rule, &flow, overridden, 0);
	return 0;
}

// Counts the sockets that belong to rules, and tells of those that are measured.
SEC("iter/bpf_sk_storage_map")
int survey(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct treatment *treatment = context->value;
	struct population *population;
	struct sock *sk = context->sk;
	struct tcp_sock *tcp;
	__u64 now;
	__u32 slot;

	if (!sk || !treatment)
		return 0;
	slot = treatment->slot;
	population = bpf_map_lookup_elem(&populations, &slot);
	if (!population)
		return 0;
	population->treated += !treatment->is_control;
	population->control += treatment->is_control;
	population->without_ecn += treatment->is_without_ecn;
	population->overridden += treatment->overridden != 0;
	if (!treatment->is_measured)
		return 0;
	now = bpf_ktime_get_ns();
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && now - treatment->told_at >= PAUSE)
		tell(treatment, tcp, now, 0);
	return 0;
}

// Notes the process that opens a socket.
SEC("cgroup/sock_create")
int opened(struct bpf_sock *sk)
{
	struct owner *owner;

	if (sk->type != STREAM || (sk->family != AF_INET && sk->family != AF_INET6))
		return 1;
	owner = bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (owner)
		set_owner(owner, bpf_get_current_task_btf());
	return 1;
}

// Notes the processes that hold sockets which were opened before.
SEC("iter/task_file")
int holders(struct bpf_iter__task_file *context)
{
	struct task_struct *task = context->task;
	struct file *file = context->file;
	struct socket *socket;
	struct owner *owner;
	struct sock *sk;
	__u64 cookie;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || socket->type != STREAM ||
	    (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6))
		return 0;
	owner = bpf_sk_storage_get(&owners, sk, 0, 0);
	if (!owner) {
		owner = bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!owner)
			return 0;
		set_owner(owner, task);
	}
	if (sk->__sk_common.skc_state == TCP_LISTEN) {
		cookie = bpf_get_socket_cookie(sk);
		bpf_map_update_elem(&listeners, &cookie, owner, 0);
	}
	return 0;
}

// The option of a rule that an application sets itself.
static __always_inline __u32 option_of(const struct bpf_sockopt *context)
{
	__s32 level = context->level, name = context->optname;

	if (level == SOL_TCP && name == TCP_CONGESTION)
		return CONGESTION;
	if (level == SOL_SOCKET && name == SO_MAX_PACING_RATE)
		return RATE;
	if (level == SOL_TCP && name == TCP_RTO_MIN_US)
		return MIN_RTO;
	if (level == SOL_TCP && name == TCP_DELACK_MAX_US)
		return ACK_DELAY;
	if ((level == SOL_IP && name == IP_TOS) || (level == SOL_IPV6 && name == IPV6_TCLASS))
		return CLASS;
	return 0;
}

static __always_inline void keep_name(char *name, const char *value, const void *end)
{
	__builtin_memset(name, 0, NAME_LENGTH);
#pragma clang loop unroll(full)
	for (int i = 0; i < NAME_LENGTH - 1; i++) {
		if ((const void *)(value + i + 1) > end || !value[i])
			break;
		name[i] = value[i];
	}
}

// The word of an application holds, after that of a rule.
SEC("cgroup/setsockopt")
int option_set(struct bpf_sockopt *context)
{
	__u32 option = option_of(context), slot;
	struct treatment *treatment;
	struct bpf_sock *sk = context->sk;
	struct counts *counts;

	if (option && sk) {
		treatment = bpf_sk_storage_get(&sockets, sk, 0, 0);
		if (treatment) {
			slot = treatment->slot;
			counts = bpf_map_lookup_elem(&counters, &slot);
			if (counts && !(treatment->overridden & option))
				counts->overridden++;
			treatment->overridden |= option;
			if (option == CONGESTION)
				keep_name(treatment->asked, context->optval, context->optval_end);
		}
	}
	// The kernel takes the value as the application has it, also one that is too long for programs.
	context->optlen = 0;
	return 1;
}
