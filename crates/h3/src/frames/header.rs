//! The type and length of a frame.

use super::Integer;

/// The most bytes of two variable-length integers.
const MAX_LENGTH: usize = 16;

/// A frame's type and length, as far as they have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    bytes: [u8; MAX_LENGTH],
    length: usize,
    current: Integer,
    frame_type: Option<u64>,
    payload: Option<u64>,
}

impl Header {
    /// Adds bytes until it is complete; returns how many were used.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            if self.payload.is_some() {
                return index;
            }
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
            let Some(value) = self.current.push(*byte) else {
                continue;
            };
            self.current = Integer::default();
            match self.frame_type {
                None => self.frame_type = Some(value),
                Some(_) => self.payload = Some(value),
            }
        }
        bytes.len()
    }

    /// Returns the type and the length, once both are there.
    pub(super) fn complete(&self) -> Option<(u64, u64)> {
        Some((self.frame_type?, self.payload?))
    }

    /// Returns the bytes that have come.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
