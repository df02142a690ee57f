//! Keys of every provider, those of TLS and of known peers without a memory allocation of their own.

use std::ops::Deref;
use std::sync::Arc;

use super::packet_protection::{AeadPacketKey, ProtectionHeaderKey};
use super::tls::{TlsHeaderKey, TlsPacketKey};
use super::{HeaderKey, PacketKey};

/// A packet key of any provider.
pub struct AnyPacketKey(PacketKeyKind);

enum PacketKeyKind {
    Aead(AeadPacketKey),
    Tls(TlsPacketKey),
    Other(Box<dyn PacketKey>),
}

impl AnyPacketKey {
    /// Takes a provider's key.
    pub fn new(key: impl PacketKey + 'static) -> Self {
        Self(PacketKeyKind::Other(Box::new(key)))
    }
}

impl Deref for AnyPacketKey {
    type Target = dyn PacketKey;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.0 {
            PacketKeyKind::Aead(key) => key,
            PacketKeyKind::Tls(key) => key,
            PacketKeyKind::Other(key) => &**key,
        }
    }
}

impl From<AeadPacketKey> for AnyPacketKey {
    fn from(key: AeadPacketKey) -> Self {
        Self(PacketKeyKind::Aead(key))
    }
}

impl From<TlsPacketKey> for AnyPacketKey {
    fn from(key: TlsPacketKey) -> Self {
        Self(PacketKeyKind::Tls(key))
    }
}

/// A header key of any provider.
pub struct AnyHeaderKey(HeaderKeyKind);

enum HeaderKeyKind {
    /// One of two that were made together.
    OfPair(Arc<[ProtectionHeaderKey; 2]>, usize),
    Tls(TlsHeaderKey),
    Other(Box<dyn HeaderKey>),
}

impl AnyHeaderKey {
    /// Takes a provider's key.
    pub fn new(key: impl HeaderKey + 'static) -> Self {
        Self(HeaderKeyKind::Other(Box::new(key)))
    }

    /// Returns the keys of both directions in one piece of memory.
    pub(crate) fn pair(keys: [ProtectionHeaderKey; 2]) -> [Self; 2] {
        let keys = Arc::new(keys);
        [0, 1].map(|index| Self(HeaderKeyKind::OfPair(keys.clone(), index)))
    }
}

impl Deref for AnyHeaderKey {
    type Target = dyn HeaderKey;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.0 {
            HeaderKeyKind::OfPair(keys, index) => &keys[*index],
            HeaderKeyKind::Tls(key) => key,
            HeaderKeyKind::Other(key) => &**key,
        }
    }
}

impl From<TlsHeaderKey> for AnyHeaderKey {
    fn from(key: TlsHeaderKey) -> Self {
        Self(HeaderKeyKind::Tls(key))
    }
}
