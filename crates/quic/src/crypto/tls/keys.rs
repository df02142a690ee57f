//! Adapts rustls's packet keys to the engine's traits, and defines the two kinds of fixed keys.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::quic;

use crate::crypto::{DirectionKeys, HeaderKey, KeyUpdates, Keys, OpenError, PacketKey, PacketKeys};
use crate::{ConnectionId, Side, Version};

/// The longest packet number on the wire; the sample is taken as if the number had this length (RFC
/// 9001, section 5.4.2).
const MAX_NUMBER_LENGTH: usize = 4;

/// Converts a version to rustls's type.
pub(super) const fn quic_version(version: Version) -> quic::Version {
    match version {
        Version::V1 => quic::Version::V1,
        Version::V2 => quic::Version::V2,
    }
}

/// Returns the Initial keys for a client's first destination connection ID (RFC 9001, section 5.2).
pub(super) fn initial(
    suite: &quic::Suite,
    version: Version,
    client_destination: &ConnectionId,
    side: Side,
) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    suite
        .keys(client_destination.as_bytes(), side, quic_version(version))
        .into()
}

/// The key and the nonce of Retry packets (RFC 9001, section 5.8; RFC 9369, section 3.3.3).
const fn retry_key(version: Version) -> (u128, [u8; 12]) {
    match version {
        Version::V1 => (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e,
            [
                0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
            ],
        ),
        Version::V2 => (
            0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92,
            [
                0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
            ],
        ),
    }
}

/// Returns the integrity tag of a Retry packet: AES-128-GCM over an empty plaintext, with the
/// version's fixed key and nonce, and the pseudo-packet as associated data.
pub(super) fn retry_tag(
    version: Version,
    original_destination: &ConnectionId,
    packet: &[u8],
) -> [u8; 16] {
    let (key, nonce) = retry_key(version);
    let id = original_destination.as_bytes();
    let mut pseudo_packet = Vec::with_capacity(1 + id.len() + packet.len());
    pseudo_packet.push(id.len() as u8);
    pseudo_packet.extend_from_slice(id);
    pseudo_packet.extend_from_slice(packet);
    let key =
        LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key.to_be_bytes()).expect("16 bytes"));
    let tag = key
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(&pseudo_packet),
            &mut [],
        )
        .expect("an empty text");
    let mut bytes = [0; 16];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// A packet key of rustls.
pub(in crate::crypto) struct TlsPacketKey(Box<dyn quic::PacketKey>);

impl PacketKey for TlsPacketKey {
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_length);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - self.0.tag_len());
        // Continuing after a failure would send the payload in the clear.
        let tag = self
            .0
            .encrypt_in_place(packet_number, header, payload)
            .expect("a packet is far shorter than what an AEAD takes");
        tag_room.copy_from_slice(tag.as_ref());
    }

    fn open(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        match self.0.decrypt_in_place(packet_number, header, payload) {
            Ok(plain) => Ok(plain.len()),
            Err(_) => Err(OpenError),
        }
    }

    fn tag_length(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// A header key of rustls.
pub(in crate::crypto) struct TlsHeaderKey(Box<dyn quic::HeaderProtectionKey>);

impl TlsHeaderKey {
    /// Returns the first byte, the packet number (as if of the greatest length) and the sample;
    /// `None` if the packet is too short.
    fn parts<'a>(
        &self,
        number_offset: usize,
        packet: &'a mut [u8],
    ) -> Option<(&'a mut u8, &'a mut [u8], &'a [u8])> {
        let (header, rest) = packet.split_at_mut_checked(number_offset)?;
        let (number, payload) = rest.split_at_mut_checked(MAX_NUMBER_LENGTH)?;
        let sample = payload.get(..self.0.sample_len())?;
        Some((header.first_mut()?, number, sample))
    }
}

impl HeaderKey for TlsHeaderKey {
    fn protect(&self, number_offset: usize, packet: &mut [u8]) {
        let (first, number, sample) = self
            .parts(number_offset, packet)
            .expect("the packet holds the sample");
        self.0
            .encrypt_in_place(sample, first, number)
            .expect("the sample and the packet number have the right lengths");
    }

    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize> {
        let (first, number, sample) = self.parts(number_offset, packet)?;
        self.0.decrypt_in_place(sample, first, number).ok()?;
        Some(usize::from(*first & 0b11) + 1)
    }
}

impl From<quic::DirectionalKeys> for DirectionKeys {
    fn from(keys: quic::DirectionalKeys) -> Self {
        Self {
            header: TlsHeaderKey(keys.header).into(),
            packet: TlsPacketKey(keys.packet).into(),
        }
    }
}

impl From<quic::Keys> for Keys {
    fn from(keys: quic::Keys) -> Self {
        Self {
            local: keys.local.into(),
            remote: keys.remote.into(),
        }
    }
}

/// The secrets from which rustls derives the key phases.
pub(super) struct TlsKeyUpdates(pub(super) quic::Secrets);

impl KeyUpdates for TlsKeyUpdates {
    fn next_keys(&mut self) -> PacketKeys {
        let keys = self.0.next_packet_keys();
        PacketKeys {
            local: TlsPacketKey(keys.local).into(),
            remote: TlsPacketKey(keys.remote).into(),
        }
    }
}
