// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The table of connections that open, and of young ones (opening.h): sets of eight ways, as in the cache of a
// CPU. An entry is found, added and removed with one line of the set's tags, without allocation or lock.
//
// A new connection takes a free way of its set, else that of the half-open connection that has been silent for
// longest, else that of the young one. So a flood of SYNs displaces half-open connections, and at most one
// young one of each full set at a time.
#pragma once

#include "tc.h"
#include "key.h"

enum { WAYS = 8 };

// Of the last packet of a connection: the time in jiffies, and whether the connection is young.
#define YOUNG (1U << 31)

// While a CPU writes an entry, or reads it for the last time, its tag is none that a key has.
#define BEING_WRITTEN 2U

// The SYNs of a connection, the local and the remote end's.
enum { LOCAL = 0, REMOTE = 1 };
struct opening {
	struct key key;
	// The FINs seen of a young connection (LOCAL_FIN, REMOTE_FIN).
	__u8 ends;
	// The side with the first SYN.
	__u8 opener;
	__u8 traffic_class;
	__u8 padding;
	__u64 at[2];
	__u32 number[2];
	__u32 mss[2];
	__u8 scale[2];
	__u8 sack_ok[2];
	__u8 stamps[2];
	// The number of times it was seen.
	__u8 seen[2];
	// The ECE and CWR flags.
	__u8 ecn[2];
	__u8 more_padding[2];
	// The number that the remote end has acknowledged, and the one after the local end's last byte.
	__u32 una;
	__u32 nxt;
	__u32 remote_fin;
	// When the handshake was completed; zero while the connection is half-open.
	__u64 completed_at;
};

struct set {
	// Zero if the way is free; else odd, or BEING_WRITTEN.
	__u32 tags[WAYS];
	__u32 touched[WAYS];
	struct opening ways[WAYS];
};

// The loader sets the number of sets, a power of two.
enum { SETS = 8192 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SETS);
	__type(key, __u32);
	__type(value, struct set);
} openings SEC(".maps");

// The loader sets them: a random number, by which nobody outside can choose a connection's set, and the number
// of sets less one.
const volatile struct {
	__u64 seed;
	__u64 last_set;
} hashing = { 0, SETS - 1 };

// Where a connection is in the table.
struct spot {
	struct set *set;
	__u32 tag;
	// WAYS if it is not there. It is in a map, because the verifier follows each of its values on the stack.
	volatile __u32 *way;
};

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static __always_inline __u64 hash_of(const struct key *key)
{
	__u64 words[4], hash = hashing.seed;
	__u32 ports;

	__builtin_memcpy(words, key, sizeof(words));
	__builtin_memcpy(&ports, &key->local_port, sizeof(ports));
	hash = mix(hash, words[0]);
	hash = mix(hash, words[1]);
	hash = mix(hash, words[2]);
	hash = mix(hash, words[3]);
	return mix(hash, ports);
}

static __always_inline int is_same(const struct key *one, const struct key *other)
{
	__u64 a[4], b[4];
	__u32 ports, other_ports;

	__builtin_memcpy(a, one, sizeof(a));
	__builtin_memcpy(b, other, sizeof(b));
	__builtin_memcpy(&ports, &one->local_port, sizeof(ports));
	__builtin_memcpy(&other_ports, &other->local_port, sizeof(other_ports));
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (ports ^ other_ports));
}

static __always_inline struct opening *at_way(struct set *set, __u32 way)
{
	return &set->ways[way & (WAYS - 1)];
}

// Looks for a connection. Returns its entry, or zero; `spot` then tells where it may be added.
static __always_inline struct opening *look_up(const struct key *key, struct spot *spot)
{
	__u64 hash = hash_of(key);
	__u32 index = hash & hashing.last_set, way = WAYS;
	struct opening *opening;
	struct set *set;

	spot->set = set = bpf_map_lookup_elem(&openings, &index);
	spot->tag = hash >> 32 | 1;
	if (!set)
		return 0;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < WAYS; i++)
		way = set->tags[i] == spot->tag ? i : way;
	*spot->way = way;
	way = *spot->way;
	if (way >= WAYS)
		return 0;
	opening = at_way(set, way);
	return is_same(&opening->key, key) ? opening : 0;
}

static __always_inline __u32 ticks(void)
{
	return bpf_jiffies64() & ~YOUNG;
}

// Notes that a connection had a packet, and whether it is young.
static __always_inline void touch(const struct spot *spot, __u32 young)
{
	spot->set->touched[*spot->way & (WAYS - 1)] = ticks() | young;
}

// Adds a half-open connection. Returns its entry, all zeros but the key; or zero if another CPU is faster.
static __always_inline struct opening *add(const struct key *key, struct spot *spot)
{
	__u32 now = ticks(), worst = 0, way = 0, old;
	struct set *set = spot->set;
	struct opening *opening;

#pragma clang loop unroll(full)
	for (__u32 i = 0; i < WAYS; i++) {
		__u32 touched = set->touched[i], tag = set->tags[i];
		__u32 silence = (now - touched) & ~YOUNG;
		__u32 rank = (touched & YOUNG) ? silence : silence | YOUNG;

		rank = tag ? rank : ~0U;
		way = rank >= worst ? i : way;
		worst = rank >= worst ? rank : worst;
	}
	*spot->way = way;
	way = *spot->way;
	old = *(volatile __u32 *)&set->tags[way & (WAYS - 1)];
	if (old == BEING_WRITTEN ||
	    __sync_val_compare_and_swap(&set->tags[way & (WAYS - 1)], old, BEING_WRITTEN) != old)
		return 0;
	opening = at_way(set, way);
	__builtin_memset(opening, 0, sizeof(*opening));
	opening->key = *key;
	set->touched[way & (WAYS - 1)] = now;
	return opening;
}

// Has others find an entry that was added.
static __always_inline void publish(const struct spot *spot)
{
	__sync_lock_test_and_set(&spot->set->tags[*spot->way & (WAYS - 1)], spot->tag);
}

// Begins to remove a connection, whose entry nobody finds from now on. Returns whether this CPU does.
static __always_inline int claim(const struct spot *spot)
{
	return __sync_val_compare_and_swap(&spot->set->tags[*spot->way & (WAYS - 1)], spot->tag,
					   BEING_WRITTEN) == spot->tag;
}

// Frees the way of a connection that was claimed.
static __always_inline void release(const struct spot *spot)
{
	__sync_lock_test_and_set(&spot->set->tags[*spot->way & (WAYS - 1)], 0);
}
