// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// The key of a connection in maps.
#pragma once

#include "types.h"

// A connection from the view of the end behind the interface; of a cable, from that of the end behind its
// first interface. IPv4 addresses are mapped to IPv6 (::ffff:a.b.c.d).
struct key {
	__u8 local[16];
	__u8 remote[16];
	__be16 local_port;
	__be16 remote_port;
};
