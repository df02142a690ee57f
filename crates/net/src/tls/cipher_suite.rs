//! The cipher suites of TLS 1.3.

use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider};
use weir_quic::crypto::tls::{provider, suites};

/// The cipher suite of packets after the handshake's first flight (RFC 8446, appendix B.4; Initial
/// packets always use AES-128-GCM).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// `TLS_AES_128_GCM_SHA256`: the fastest where the processor has AES instructions.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`: the fastest elsewhere.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All suites, in the default order of preference.
    pub(super) const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    fn supported(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128Gcm => suites::aes_128_gcm(),
            Self::Aes256Gcm => suites::aes_256_gcm(),
            Self::ChaCha20Poly1305 => suites::chacha20_poly1305(),
        }
    }

    /// The suite with protection of records.
    fn over_tcp(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// Returns Weir's cryptography with these suites, in order of preference.
pub(super) fn provider_with(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let suites = suites.iter().map(|suite| suite.supported());
    Arc::new(CryptoProvider {
        cipher_suites: suites.collect(),
        ..CryptoProvider::clone(&provider())
    })
}

/// Returns cryptography for TLS over TCP with these suites, in order of preference.
pub(super) fn tcp_provider_with(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let suites = suites.iter().map(|suite| suite.over_tcp());
    Arc::new(CryptoProvider {
        cipher_suites: suites.collect(),
        ..default_provider()
    })
}

/// Whether a configuration's suites protect records, as Weir's for QUIC do not.
pub(super) fn protects_records(provider: &CryptoProvider) -> bool {
    let is_quics = |suite: &SupportedCipherSuite| {
        let mut quics = CipherSuite::ALL.into_iter().map(CipherSuite::supported);
        quics.any(|other| match (other.tls13(), suite.tls13()) {
            (Some(other), Some(suite)) => std::ptr::eq(other, suite),
            _ => false,
        })
    };
    !provider.cipher_suites.iter().any(is_quics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_for_quic_alone_are_known() {
        assert!(!protects_records(&provider_with(&CipherSuite::ALL)));
        assert!(protects_records(&tcp_provider_with(&CipherSuite::ALL)));
        let same = |(quic, tcp): (&SupportedCipherSuite, &SupportedCipherSuite)| {
            quic.suite() == tcp.suite()
        };
        let (quic, tcp) = (
            provider_with(&CipherSuite::ALL),
            tcp_provider_with(&CipherSuite::ALL),
        );
        assert!(quic.cipher_suites.iter().zip(&tcp.cipher_suites).all(same));
    }
}
