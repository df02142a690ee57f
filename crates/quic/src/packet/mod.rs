//! Packets: headers, packet numbers, several packets in a datagram (RFC 9000, section 17).
