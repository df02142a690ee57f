//! Transport parameters (RFC 9000, section 18).
