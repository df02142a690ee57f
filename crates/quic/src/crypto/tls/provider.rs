//! The algorithms for data centers.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};

use super::random::BufferedRandom;
use super::suites;

/// Returns aws-lc-rs with X25519 before P-256, and AES-128-GCM before AES-256-GCM and
/// ChaCha20-Poly1305. It is for QUIC alone: its suites protect no TLS records.
///
/// The key exchanges include no post-quantum hybrid. X25519MLKEM768 adds 1,184 bytes to the
/// ClientHello, which then exceeds one packet of 1,200 bytes, 1,088 bytes to the ServerHello, and
/// about 100 µs of computation to a handshake that takes a few hundred. If recorded traffic must
/// stay secret for decades, push `rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768` to the front
/// of `kx_groups`.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            suites::aes_128_gcm(),
            suites::aes_256_gcm(),
            suites::chacha20_poly1305(),
        ],
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        secure_random: &BufferedRandom,
        ..default_provider()
    })
}
