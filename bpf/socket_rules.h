// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The rules of a policy for sockets, as user space writes them, and which of them a socket's data matches.
// A list without entries matches everything. The records have no padding.
#pragma once

#include "socket.h"

enum {
	MOST_RULES = 256,
	MOST_PREFIXES = 8,
	MOST_PORTS = 16,
	MOST_GROUPS = 8,
	MOST_COMMANDS = 8,
	MOST_USERS = 16,
	// Levels of control groups below the root.
	MOST_LEVELS = 16,
	// Rules, of all versions of the policy, that sockets belong to.
	MOST_SLOTS = 1024,
};

#define NO_USER (~0U)
// The share of all connections: the number of hashes.
#define WHOLE (1ULL << 32)

// Addresses are two words in the host's order; IPv4 is mapped (::ffff:0:0/96).
struct prefix {
	__u64 bits[2];
	__u64 mask[2];
	__u32 is_ipv4;
	__u32 padding;
};

struct port_range {
	__u16 first;
	__u16 last;
};

// A process's name or a beginning of it, as two words in memory's order.
struct command {
	__u64 bytes[2];
	__u64 mask[2];
};

struct rule {
	struct prefix from[MOST_PREFIXES];
	struct prefix to[MOST_PREFIXES];
	// IDs of control groups.
	__u64 groups[MOST_GROUPS];
	struct command commands[MOST_COMMANDS];
	// A bit for each code point; none for any.
	__u64 dscp;
	// The rule is for connections whose hash with the seed is below this.
	__u64 share;
	struct port_range from_ports[MOST_PORTS];
	struct port_range to_ports[MOST_PORTS];
	__u32 users[MOST_USERS];
	__u32 from_count;
	__u32 to_count;
	__u32 group_count;
	__u32 command_count;
	__u32 from_port_count;
	__u32 to_port_count;
	__u32 user_count;
	// Where the rule's sockets are counted.
	__u32 slot;
	// What is set: zero is left as it is.
	char congestion[NAME_LENGTH];
	// Packets.
	__u32 initial_window;
	// Bytes.
	__u32 max_window;
	// Bytes per second.
	__u32 max_rate;
	// Microseconds.
	__u32 min_rto;
	__u32 max_ack_delay;
	// The code point and one.
	__u8 set_dscp;
	// Whether ECN is asked for in the handshake, and whether the algorithm is Reno without it.
	__u8 asks_ecn;
	__u8 needs_ecn;
	__u8 passes;
	__u32 seed;
	// Whether connections beyond the share belong to the rule, and are left alone; whether all are
	// measured; whether the rule was taken back, so that all are left alone.
	__u8 compares;
	__u8 measures;
	__u8 is_off;
	__u8 padding;
};

// A version of the policy.
struct ruleset {
	__u32 count;
	// Whether a rule names control groups or processes, and whether one asks for ECN.
	__u32 has_groups;
	__u32 has_owners;
	__u32 asks_ecn;
	struct rule rules[MOST_RULES];
};

// What rules match of the data that a socket sends.
struct flow {
	__u64 from[2];
	__u64 to[2];
	// The control groups of the socket, from the root to its own.
	__u64 groups[MOST_LEVELS];
	__u64 command[2];
	__u32 user;
	__u32 is_ipv4;
	__u32 dscp;
	__u16 from_port;
	__u16 to_port;
};

static __always_inline __u32 rotated(__u32 value, int bits)
{
	return value << bits | value >> (32 - bits);
}

// The finalizer of MurmurHash3.
static __always_inline __u32 finalized(__u32 hash)
{
	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	return hash ^ hash >> 16;
}

static __always_inline __u32 with_word(__u32 hash, __u32 word)
{
	word = rotated(word * 0xcc9e2d51, 15) * 0x1b873593;
	return rotated(hash ^ word, 13) * 5 + 0xe6546b64;
}

// MurmurHash3 (x86, 32 bits) of an address and a port.
static __always_inline __u32 end_hash(const __u64 *address, __u16 port, __u32 seed)
{
	__u32 hash = seed;

	hash = with_word(hash, address[0] >> 32);
	hash = with_word(hash, address[0]);
	hash = with_word(hash, address[1] >> 32);
	hash = with_word(hash, address[1]);
	hash = with_word(hash, port);
	return finalized(hash ^ 20);
}

// As `connection_hash` of weir-policy: the same for both ends of a connection.
static __always_inline __u32 connection_hash(const struct flow *flow, __u32 seed)
{
	return finalized(end_hash(flow->from, flow->from_port, seed) + end_hash(flow->to, flow->to_port, seed));
}

static __always_inline int in_share(const struct rule *rule, const struct flow *flow)
{
	return rule->share >= WHOLE || connection_hash(flow, rule->seed) < rule->share;
}

// Whether a connection that matches a rule is left alone.
static __always_inline int is_control(const struct rule *rule, const struct flow *flow)
{
	return rule->is_off || !in_share(rule, flow);
}

static __always_inline int in_prefixes(const struct prefix *list, __u32 count, const __u64 *bits, __u32 is_ipv4)
{
	for (__u32 i = 0; i < MOST_PREFIXES; i++) {
		const struct prefix *set = &list[i];

		if (i >= count)
			break;
		if (set->is_ipv4 == is_ipv4 && !((bits[0] ^ set->bits[0]) & set->mask[0]) &&
		    !((bits[1] ^ set->bits[1]) & set->mask[1]))
			return 1;
	}
	return 0;
}

static __always_inline int in_ports(const struct port_range *list, __u32 count, __u16 port)
{
	for (__u32 i = 0; i < MOST_PORTS; i++) {
		if (i >= count)
			break;
		if (list[i].first <= port && port <= list[i].last)
			return 1;
	}
	return 0;
}

static __always_inline int is_below(const struct flow *flow, __u64 group)
{
	for (int i = 0; i < MOST_LEVELS; i++)
		if (flow->groups[i] == group)
			return 1;
	return 0;
}

static __always_inline int in_groups(const struct rule *rule, const struct flow *flow)
{
	for (__u32 i = 0; i < MOST_GROUPS; i++) {
		if (i >= rule->group_count)
			break;
		if (is_below(flow, rule->groups[i]))
			return 1;
	}
	return 0;
}

static __always_inline int in_commands(const struct rule *rule, const struct flow *flow)
{
	for (__u32 i = 0; i < MOST_COMMANDS; i++) {
		const struct command *command = &rule->commands[i];

		if (i >= rule->command_count)
			break;
		if (!((flow->command[0] ^ command->bytes[0]) & command->mask[0]) &&
		    !((flow->command[1] ^ command->bytes[1]) & command->mask[1]))
			return 1;
	}
	return 0;
}

static __always_inline int in_users(const struct rule *rule, __u32 user)
{
	for (__u32 i = 0; i < MOST_USERS; i++) {
		if (i >= rule->user_count)
			break;
		if (rule->users[i] == user)
			return 1;
	}
	return 0;
}

// Returns whether all conditions of a rule hold. The verifier follows a function that is not static once.
__attribute__((noinline)) int matches(const struct flow *flow, const struct rule *rule)
{
	if (!flow || !rule)
		return 0;
	if (rule->from_port_count && !in_ports(rule->from_ports, rule->from_port_count, flow->from_port))
		return 0;
	if (rule->to_port_count && !in_ports(rule->to_ports, rule->to_port_count, flow->to_port))
		return 0;
	if (rule->from_count && !in_prefixes(rule->from, rule->from_count, flow->from, flow->is_ipv4))
		return 0;
	if (rule->to_count && !in_prefixes(rule->to, rule->to_count, flow->to, flow->is_ipv4))
		return 0;
	if (rule->dscp && !(rule->dscp >> (flow->dscp & 63) & 1))
		return 0;
	if (rule->group_count && !in_groups(rule, flow))
		return 0;
	if (rule->user_count && (flow->user == NO_USER || !in_users(rule, flow->user)))
		return 0;
	if (rule->command_count && (!flow->command[0] || !in_commands(rule, flow)))
		return 0;
	return rule->compares || in_share(rule, flow);
}

// Returns the place of the first rule that matches, or a negative number.
__attribute__((noinline)) int first_place(const struct flow *flow, const struct ruleset *set)
{
	if (!flow || !set)
		return -1;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MOST_RULES; i++) {
		if (i >= set->count)
			break;
		if (matches(flow, &set->rules[i]))
			return i;
	}
	return -1;
}

// Returns the first rule that matches.
static __always_inline const struct rule *first_match(const struct ruleset *set, const struct flow *flow)
{
	__u32 place = first_place(flow, set);

	if (place >= MOST_RULES)
		return 0;
	// The verifier has to see the bound, which the compiler knows already.
	barrier_var(place);
	return &set->rules[place & (MOST_RULES - 1)];
}
