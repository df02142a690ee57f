//! Variable-length integers (RFC 9000, section 16) and a bounds-checked reader.
