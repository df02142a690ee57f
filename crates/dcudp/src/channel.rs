//! The packet layer of a connection: socket ids, packet numbers, timestamps and protection.

use bytes::{Buf, BytesMut};
use weir_units::Time;

use crate::packet::{
    Control, ControlHeader, DataHeader, HEADER_LENGTH, Header, HeaderFlags, SocketId, Timestamp,
};
use crate::protection::{ASSOCIATED_LENGTH, PACKET_NUMBER_LENGTH, PacketProtection, ReplayWindow};
use crate::sequence::SequenceNumber;

/// The first count of control packets.
const FIRST_CONTROL: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) local: SocketId,
    pub(crate) peer: SocketId,
    started: Time,
    /// The number of the next control packet.
    pub(crate) next_control: u64,
    /// The peer's newest control packet.
    newest_control: u64,
    protection: Option<Box<dyn PacketProtection>>,
    next_number: u64,
    replay: ReplayWindow,
}

/// The header fields of a data packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataFields {
    pub(crate) count: u64,
    pub(crate) position: crate::packet::MessagePosition,
    pub(crate) in_order: bool,
    pub(crate) flags: HeaderFlags,
    pub(crate) message: u64,
}

impl Channel {
    pub(crate) fn new(now: Time, local: SocketId, peer: SocketId) -> Self {
        Self {
            local,
            peer,
            started: now,
            next_control: FIRST_CONTROL,
            newest_control: FIRST_CONTROL - 1,
            protection: None,
            next_number: 0,
            replay: ReplayWindow::default(),
        }
    }

    pub(crate) fn protect(&mut self, protection: Option<Box<dyn PacketProtection>>) {
        self.protection = protection;
    }

    /// Returns the overhead of a data packet beside its payload.
    pub(crate) fn overhead(&self) -> usize {
        let protection = self.protection.as_ref();
        let sealed =
            protection.map_or(0, |protection| PACKET_NUMBER_LENGTH + protection.overhead());
        HEADER_LENGTH + sealed
    }

    fn timestamp(&self, now: Time) -> Timestamp {
        Timestamp(now.since(self.started).as_micros() as u32)
    }

    /// Writes a control packet with the next number, and returns the number.
    pub(crate) fn write_control(
        &mut self,
        now: Time,
        marks: HeaderFlags,
        control: &Control<'_>,
        buffer: &mut Vec<u8>,
    ) -> u64 {
        let number = self.next_control;
        self.next_control += 1;
        self.write_numbered(now, number, marks, control, buffer);
        number
    }

    /// Writes a control packet with a given number.
    pub(crate) fn write_numbered(
        &mut self,
        now: Time,
        number: u64,
        marks: HeaderFlags,
        control: &Control<'_>,
        buffer: &mut Vec<u8>,
    ) {
        let header = ControlHeader {
            kind: control.kind(),
            flags: marks,
            number: SequenceNumber::of(number),
            timestamp: self.timestamp(now),
            destination: self.peer,
        };
        let start = buffer.len();
        header.encode(buffer);
        // Handshake packets carry a tag instead.
        if matches!(control, Control::Handshake(_)) {
            return control.encode(buffer);
        }
        let body = self.write_number(buffer);
        control.encode(buffer);
        self.seal(start, body, buffer);
    }

    /// Returns whether data packets contain more than header and payload.
    pub(crate) fn is_protected(&self) -> bool {
        self.protection.is_some()
    }

    /// Returns the header of a data packet.
    pub(crate) fn data_header(&self, now: Time, fields: &DataFields) -> DataHeader {
        DataHeader {
            sequence: SequenceNumber::of(fields.count),
            position: fields.position,
            in_order: fields.in_order,
            flags: fields.flags,
            message: crate::MessageNumber::of(fields.message),
            timestamp: self.timestamp(now),
            destination: self.peer,
        }
    }

    /// Writes a data packet, whose payload comes in one part or more.
    pub(crate) fn write_data<'p>(
        &mut self,
        now: Time,
        fields: &DataFields,
        payload: impl Iterator<Item = &'p [u8]>,
        buffer: &mut Vec<u8>,
    ) {
        let start = buffer.len();
        self.data_header(now, fields).encode(buffer);
        let body = self.write_number(buffer);
        payload.for_each(|part| buffer.extend_from_slice(part));
        self.seal(start, body, buffer);
    }

    /// Writes the packet number, if packets are protected. Returns the start of the body.
    fn write_number(&self, buffer: &mut Vec<u8>) -> usize {
        if self.protection.is_some() {
            buffer.extend_from_slice(&self.next_number.to_be_bytes());
        }
        buffer.len()
    }

    fn seal(&mut self, start: usize, body: usize, buffer: &mut Vec<u8>) {
        let associated = buffer
            .get(start..body)
            .and_then(|bytes| <[u8; ASSOCIATED_LENGTH]>::try_from(bytes).ok());
        if let (Some(protection), Some(associated)) = (&self.protection, associated) {
            protection.seal(self.next_number, &associated, buffer, body);
            self.next_number += 1;
        }
    }

    /// Decodes and authenticates a packet. Returns its header and body.
    pub(crate) fn open(&mut self, mut datagram: BytesMut) -> Option<(Header, BytesMut)> {
        let (header, _) = Header::decode(&datagram).ok()?;
        let Some(protection) = &self.protection else {
            datagram.advance(HEADER_LENGTH);
            return Some((header, datagram));
        };
        let associated = *datagram.first_chunk::<ASSOCIATED_LENGTH>()?;
        datagram.advance(ASSOCIATED_LENGTH);
        let number = *associated.last_chunk::<PACKET_NUMBER_LENGTH>()?;
        let number = u64::from_be_bytes(number);
        if !self.replay.is_new(number) {
            return None;
        }
        let length = protection.open(number, &associated, &mut datagram)?;
        self.replay.note(number);
        datagram.truncate(length);
        Some((header, datagram))
    }

    /// Records the number of a control packet from the peer. Returns whether it is the newest.
    pub(crate) fn is_newest(&mut self, number: SequenceNumber) -> bool {
        let number = number.expand(self.newest_control);
        let is_newest = number > self.newest_control;
        self.newest_control = self.newest_control.max(number);
        is_newest
    }
}
