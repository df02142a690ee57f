//! Frames.

use super::ProtocolError;

/// The most bytes of a frame's contents.
pub const LARGEST_CONTENTS: usize = 256 * 1024;

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The type of the message.
    pub kind: u8,
    /// The length of the contents in bytes.
    pub length: usize,
}

impl FrameHeader {
    /// Its length in bytes.
    pub const LENGTH: usize = 5;

    /// Decodes the first bytes of a frame.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`].
    pub fn decode([kind, length @ ..]: [u8; Self::LENGTH]) -> Result<Self, ProtocolError> {
        let length = u32::from_be_bytes(length);
        match usize::try_from(length) {
            Ok(length) if length <= LARGEST_CONTENTS => Ok(Self { kind, length }),
            _ => Err(ProtocolError::TooLong(length.into())),
        }
    }

    /// Appends a frame with contents that `write` appends, at most [`LARGEST_CONTENTS`] bytes.
    pub(super) fn frame(kind: u8, buffer: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        buffer.push(kind);
        let start = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        write(buffer);
        let length = u32::try_from(buffer.len() - start - 4).unwrap_or(u32::MAX);
        if let Some(field) = buffer.get_mut(start..start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_frames_are_refused_before_their_contents_are_read() {
        let largest = LARGEST_CONTENTS as u32;
        let header = |length: u32| {
            let [a, b, c, d] = length.to_be_bytes();
            FrameHeader::decode([7, a, b, c, d])
        };
        let length = LARGEST_CONTENTS;
        assert_eq!(header(largest), Ok(FrameHeader { kind: 7, length }));
        let long = ProtocolError::TooLong(u64::from(largest) + 1);
        assert_eq!(header(largest + 1), Err(long));
    }
}
