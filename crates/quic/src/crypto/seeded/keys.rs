//! Toy keys by level, direction and key phase.

use super::cipher::{SeededHeaderKey, SeededPacketKey};
use super::mixing::Secret;
use crate::crypto::{AnyHeaderKey, AnyPacketKey, DirectionKeys, KeyUpdates, Keys, PacketKeys};
use crate::{ConnectionId, Side, Version};

const NEXT_PHASE: u64 = 0x6b75;
const VERSION_2: u64 = 0x7632;

/// Returns the secret for a version: versions have different keys (RFC 9369, section 3.3).
pub(super) fn in_version(secret: Secret, version: Version) -> Secret {
    match version {
        Version::V1 => secret,
        Version::V2 => secret.derive(VERSION_2),
    }
}

/// Returns the keys for packets that `sender` sends.
pub(super) fn direction_keys(secret: Secret, sender: Side) -> DirectionKeys {
    let secret = secret.derive(sender as u64);
    DirectionKeys {
        header: AnyHeaderKey::new(SeededHeaderKey::new(secret)),
        packet: AnyPacketKey::new(SeededPacketKey::new(secret)),
    }
}

/// Returns the keys of both directions from the view of `side`.
pub(super) fn level_keys(secret: Secret, side: Side) -> Keys {
    Keys {
        local: direction_keys(secret, side),
        remote: direction_keys(secret, side.other()),
    }
}

/// Returns the Initial keys, which anyone can compute, as in QUIC.
pub(super) fn initial(version: Version, client_destination: &ConnectionId, side: Side) -> Keys {
    let secret = Secret::new(0, 0).absorb(client_destination.as_bytes());
    level_keys(in_version(secret, version), side)
}

/// Returns the stand-in for the integrity tag of a Retry packet.
pub(super) fn retry_tag(
    version: Version,
    original_destination: &ConnectionId,
    packet: &[u8],
) -> [u8; 16] {
    let secret = Secret::new(0, 1).absorb(original_destination.as_bytes());
    SeededPacketKey::new(in_version(secret, version)).checksum(packet)
}

/// The secret of a key phase, from which all later ones are derived.
pub(super) struct SeededKeyUpdates {
    pub(super) secret: Secret,
    pub(super) side: Side,
}

impl KeyUpdates for SeededKeyUpdates {
    fn next_keys(&mut self) -> PacketKeys {
        self.secret = self.secret.derive(NEXT_PHASE);
        let key = |sender| direction_keys(self.secret, sender).packet;
        PacketKeys {
            local: key(self.side),
            remote: key(self.side.other()),
        }
    }
}
