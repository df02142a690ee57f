// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The kernel's names for integers, which libbpf's headers expect.
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
