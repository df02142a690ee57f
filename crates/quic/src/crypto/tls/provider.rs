//! The algorithms for data centers.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};

/// Returns aws-lc-rs with X25519 before P-256, and AES-128-GCM before AES-256-GCM and
/// ChaCha20-Poly1305.
///
/// The key exchanges include no post-quantum hybrid. X25519MLKEM768 adds 1,184 bytes to the
/// ClientHello, which then exceeds one packet of 1,200 bytes, 1,088 bytes to the ServerHello, and
/// about 100 µs of computation to a handshake that takes a few hundred. If recorded traffic must
/// stay secret for decades, push `rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768` to the front
/// of `kx_groups`.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        ..default_provider()
    })
}
