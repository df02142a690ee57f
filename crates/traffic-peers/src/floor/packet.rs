//! The floor's packets.
//!
//! A datagram is a sequence of records: kind (1 byte), length of the payload (2), packet number (8),
//! payload. All but the first flight is sealed; the 11 header bytes are authenticated.

use rustls::quic::{DirectionalKeys, PacketKey};
use weir_traffic::calls::Error;

use crate::settings::{LARGEST_BATCH, gso_batch};

/// Bytes of a record's header.
pub(super) const HEADER: usize = 11;

/// Bytes of an AES-128-GCM tag.
pub(super) const TAG: usize = 16;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// TLS, not encrypted.
    Initial = 1,
    /// TLS under handshake keys.
    Handshake = 2,
    /// A request or a part of a reply.
    Data = 3,
    /// The number of bytes received of the current reply (8 bytes).
    Acknowledgement = 4,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Initial,
            Self::Handshake,
            Self::Data,
            Self::Acknowledgement,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// One direction's key with its packet number.
pub(super) struct Sealer {
    key: Box<dyn PacketKey>,
    next: u64,
}

impl Sealer {
    pub(super) fn new(keys: DirectionalKeys) -> Self {
        Self {
            key: keys.packet,
            next: 0,
        }
    }

    /// Builds a sealed record in `out`, which has exactly its size.
    pub(super) fn seal(&mut self, kind: Kind, payload: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let number = self.next;
        self.next += 1;
        let too_small = || Error::MalformedRequest;
        let (header, rest) = out.split_at_mut_checked(HEADER).ok_or_else(too_small)?;
        let (body, tag) = rest
            .split_at_mut_checked(payload.len())
            .ok_or_else(too_small)?;
        write_header(header, kind, payload.len() + TAG, number)?;
        body.copy_from_slice(payload);
        let sealed = self.key.encrypt_in_place(number, header, body)?;
        tag.get_mut(..TAG)
            .ok_or_else(too_small)?
            .copy_from_slice(sealed.as_ref());
        Ok(())
    }

    /// Appends a sealed record.
    pub(super) fn append(
        &mut self,
        kind: Kind,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = out.len();
        out.resize(start + HEADER + payload.len() + TAG, 0);
        self.seal(kind, payload, out.get_mut(start..).unwrap_or_default())
    }
}

/// Appends an unencrypted record.
pub(super) fn append_plain(payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.resize(start + HEADER, 0);
    let header = out.get_mut(start..).unwrap_or_default();
    write_header(header, Kind::Initial, payload.len(), 0)?;
    out.extend_from_slice(payload);
    Ok(())
}

fn write_header(out: &mut [u8], kind: Kind, length: usize, number: u64) -> Result<(), Error> {
    let length = u16::try_from(length).map_err(|_| Error::MalformedRequest)?;
    let fields = [kind as u8]
        .into_iter()
        .chain(length.to_be_bytes())
        .chain(number.to_be_bytes());
    for (place, byte) in out.iter_mut().zip(fields) {
        *place = byte;
    }
    Ok(())
}

/// A received record.
pub(super) struct Record<'a> {
    pub(super) kind: Kind,
    number: u64,
    header: [u8; HEADER],
    payload: &'a mut [u8],
}

impl<'a> Record<'a> {
    /// Splits the first record off a datagram; `None` if it is malformed.
    pub(super) fn split(datagram: &'a mut [u8]) -> Option<(Self, &'a mut [u8])> {
        let (header, rest) = datagram.split_first_chunk_mut::<HEADER>()?;
        let [kind, length_high, length_low, number @ ..] = *header;
        let length = u16::from_be_bytes([length_high, length_low]);
        let (payload, rest) = rest.split_at_mut_checked(length.into())?;
        let record = Self {
            kind: Kind::from_byte(kind)?,
            number: u64::from_be_bytes(number),
            header: *header,
            payload,
        };
        Some((record, rest))
    }

    /// Returns the payload of an unencrypted record.
    pub(super) fn plain(self) -> &'a [u8] {
        self.payload
    }

    /// Opens the payload in place.
    pub(super) fn open(self, key: &dyn PacketKey) -> Result<&'a [u8], rustls::Error> {
        key.decrypt_in_place(self.number, &self.header, self.payload)
    }
}

/// Builds batches of data packets in a reused buffer.
pub(super) struct Batcher {
    memory: Vec<u8>,
    packet_size: usize,
}

impl Batcher {
    pub(super) fn new(packet_size: usize) -> Self {
        Self {
            memory: vec![0; LARGEST_BATCH],
            packet_size,
        }
    }

    /// Returns the size of each packet in a batch but the last.
    pub(super) fn packet_size(&self) -> usize {
        self.packet_size
    }

    /// Seals as much of `data` as one batch holds. Returns the batch and the bytes taken.
    pub(super) fn build(
        &mut self,
        sealer: &mut Sealer,
        data: &[u8],
    ) -> Result<(&[u8], usize), Error> {
        let room = self.packet_size - HEADER - TAG;
        let packets = gso_batch(u16::try_from(self.packet_size).ok());
        let (mut length, mut taken) = (0, 0);
        for chunk in data.chunks(room).take(packets) {
            let end = length + HEADER + chunk.len() + TAG;
            let out = self.memory.get_mut(length..end).unwrap_or_default();
            sealer.seal(Kind::Data, chunk, out)?;
            length = end;
            taken += chunk.len();
        }
        Ok((self.memory.get(..length).unwrap_or_default(), taken))
    }
}
