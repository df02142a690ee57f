//! The handshake bytes of one packet number space (RFC 9000, section 7.5; CRYPTO frames).

use std::collections::BTreeMap;

use crate::codec::varint_size;
use crate::frame::write;
use crate::recovery::SentFrame;
use crate::{Code, TransportError};

/// The most handshake bytes that wait for earlier ones (RFC 9000 requires at least 4096; client
/// certificates need more).
const MAX_BUFFERED: u64 = 64 * 1024;
/// The most out-of-order pieces.
const MAX_PIECES: usize = 64;

/// Handshake bytes of both directions. They are few: all sent bytes are kept until their space
/// ends.
#[derive(Debug, Default)]
pub(super) struct CryptoStream {
    outgoing: Vec<u8>,
    /// The end of the bytes in `outgoing` that have been sent once.
    sent: usize,
    /// Ranges to be sent again: begin and end.
    lost: Vec<(usize, usize)>,
    /// The number of bytes passed to the handshake.
    read: u64,
    /// Bytes received ahead of a gap, by offset. No byte is stored twice, whatever pieces the peer
    /// sends.
    early: BTreeMap<u64, Vec<u8>>,
}

impl CryptoStream {
    /// Appends bytes for the peer.
    pub(super) fn write(&mut self, data: &[u8]) {
        self.outgoing.extend_from_slice(data);
    }

    /// Lets `append` append bytes for the peer.
    pub(super) fn write_with(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        // The message of a known peer, mostly.
        self.outgoing.reserve(32);
        append(&mut self.outgoing);
    }

    pub(super) fn wants_to_send(&self) -> bool {
        !self.lost.is_empty() || self.sent < self.outgoing.len()
    }

    /// Writes CRYPTO frames while `out` has room up to `limit`, lost bytes first.
    pub(super) fn fill(
        &mut self,
        out: &mut Vec<u8>,
        limit: usize,
        mut sent: impl FnMut(SentFrame),
    ) {
        while let Some((begin, end)) = self.lost.pop().or_else(|| {
            self.wants_to_send()
                .then_some((self.sent, self.outgoing.len()))
        }) {
            let is_new = begin == self.sent;
            let overhead = 1 + varint_size(begin as u64) + 4;
            let room = limit.saturating_sub(out.len() + overhead);
            let stop = end.min(begin + room);
            if room == 0 {
                if !is_new {
                    self.lost.push((begin, end));
                }
                return;
            }
            write::crypto(out, begin as u64, &self.outgoing[begin..stop]);
            sent(SentFrame::Crypto {
                offset: begin as u64,
                length: (stop - begin) as u32,
            });
            if is_new {
                self.sent = stop;
            } else if stop < end {
                self.lost.push((stop, end));
            }
        }
    }

    /// Queues a lost CRYPTO frame again. Bytes that another packet's ACK covers may be sent once
    /// too often, which is harmless in a handshake of a few packets.
    pub(super) fn on_lost(&mut self, offset: u64, length: u32) {
        let begin = offset as usize;
        let range = (begin, begin + length as usize);
        if !self.lost.contains(&range) {
            self.lost.push(range);
        }
    }

    /// Handles received bytes. `deliver` gets those that are in order now.
    pub(super) fn receive(
        &mut self,
        offset: u64,
        data: &[u8],
        mut deliver: impl FnMut(&[u8]) -> Result<(), TransportError>,
    ) -> Result<(), TransportError> {
        let end = offset + data.len() as u64;
        if end <= self.read {
            return Ok(());
        }
        if end > self.read + MAX_BUFFERED {
            return Err(exceeded());
        }
        if offset > self.read {
            return self.keep(offset, data);
        }
        deliver(&data[(self.read - offset) as usize..])?;
        self.read = end;
        while let Some(entry) = self.early.first_entry()
            && *entry.key() <= self.read
        {
            let (offset, data) = entry.remove_entry();
            let end = offset + data.len() as u64;
            if end > self.read {
                deliver(&data[(self.read - offset) as usize..])?;
                self.read = end;
            }
        }
        Ok(())
    }

    /// Stores the new bytes of a piece ahead of a gap.
    fn keep(&mut self, mut offset: u64, mut data: &[u8]) -> Result<(), TransportError> {
        while !data.is_empty() {
            let right = self.early.range(offset + 1..).next();
            let room = right.map_or(u64::MAX, |(start, _)| start - offset);
            let until_right = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let (piece, rest) = data.split_at(until_right);
            let pieces = self.early.len();
            let left = self.early.range_mut(..=offset).next_back();
            match left.map(|(start, left)| (offset - start, left)) {
                // It extends the piece on its left, or lies within it.
                Some((at, left)) if at <= left.len() as u64 => {
                    left.extend_from_slice(piece.get(left.len() - at as usize..).unwrap_or(&[]));
                }
                _ if pieces >= MAX_PIECES => return Err(exceeded()),
                _ => _ = self.early.insert(offset, piece.to_vec()),
            }
            data = rest;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

fn exceeded() -> TransportError {
    TransportError::new(
        Code::CRYPTO_BUFFER_EXCEEDED,
        "handshake data far ahead of what is in order",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, Frames};

    fn pump(from: &mut CryptoStream, to: &mut CryptoStream, limit: usize, got: &mut Vec<u8>) {
        let mut out = Vec::new();
        from.fill(&mut out, limit, |_| ());
        for frame in Frames::new(&out) {
            let Frame::Crypto { offset, data } = frame.unwrap() else {
                panic!("CRYPTO expected")
            };
            to.receive(offset, data, |data| {
                got.extend_from_slice(data);
                Ok(())
            })
            .unwrap();
        }
    }

    #[test]
    fn lost_bytes_are_sent_again_and_delivered_in_order() {
        let message: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let (mut from, mut to, mut got) = Default::default();
        let from: &mut CryptoStream = &mut from;
        from.write(&message);
        let mut lost = Vec::new();
        from.fill(&mut Vec::new(), 1200, |frame| lost.push(frame));
        while from.wants_to_send() {
            pump(from, &mut to, 1200, &mut got);
        }
        assert!(got.is_empty());
        for frame in lost {
            let SentFrame::Crypto { offset, length } = frame else {
                panic!("CRYPTO expected")
            };
            from.on_lost(offset, length);
        }
        while from.wants_to_send() {
            pump(from, &mut to, 300, &mut got);
        }
        assert_eq!(got, message);
    }

    #[test]
    fn duplicate_bytes_are_buffered_once() {
        let message: Vec<u8> = (0..=255).cycle().take(3000).collect();
        let (mut stream, mut got) = (CryptoStream::default(), Vec::new());
        for index in 0..500 {
            let begin = 1 + index * 7 % 2000;
            stream
                .receive(begin as u64, &message[begin..begin + 900], |_| {
                    panic!("nothing is in order yet")
                })
                .unwrap();
            let kept: usize = stream.early.values().map(Vec::len).sum();
            assert!(kept < message.len() && stream.early.len() < MAX_PIECES);
        }
        stream
            .receive(0, &message[..1], |data| {
                got.extend_from_slice(data);
                Ok(())
            })
            .unwrap();
        assert_eq!(got, message[..got.len()]);
        assert!(got.len() > 2000 && stream.early.is_empty());
    }

    #[test]
    fn too_many_gaps_are_rejected() {
        let mut stream = CryptoStream::default();
        let mut results = (1..100).map(|index| stream.receive(index * 2, &[1], |_| Ok(())));
        let refused = results.find_map(Result::err).unwrap();
        assert_eq!(refused.code, Code::CRYPTO_BUFFER_EXCEEDED);
        assert_eq!(stream.early.len(), MAX_PIECES);
    }

    #[test]
    fn data_beyond_the_buffer_limit_are_rejected() {
        let error = CryptoStream::default()
            .receive(MAX_BUFFERED, &[1], |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.code, Code::CRYPTO_BUFFER_EXCEEDED);
    }
}
