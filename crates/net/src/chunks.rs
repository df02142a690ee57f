//! Pieces of a stream put together.

use bytes::{Bytes, BytesMut};

/// What has been read so far. A stream that came in one piece is not copied.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    first: Bytes,
    all: Option<BytesMut>,
}

impl Chunks {
    pub(crate) fn push(&mut self, chunk: Bytes) {
        match &mut self.all {
            Some(all) => all.extend_from_slice(&chunk),
            None if self.first.is_empty() => self.first = chunk,
            None => {
                let mut all = BytesMut::with_capacity(4 * (self.first.len() + chunk.len()));
                all.extend_from_slice(&self.first);
                all.extend_from_slice(&chunk);
                self.all = Some(all);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.as_ref().map_or(self.first.len(), BytesMut::len)
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.all.map_or(self.first, BytesMut::freeze)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_in_order_and_one_piece_as_it_came() {
        let piece = Bytes::from_static(b"one");
        let mut chunks = Chunks::default();
        chunks.push(piece.clone());
        assert_eq!(chunks.into_bytes().as_ptr(), piece.as_ptr());
        let mut chunks = Chunks::default();
        for piece in ["a", "bc", "", "def"] {
            chunks.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!(
            (chunks.len(), chunks.into_bytes()),
            (6, Bytes::from_static(b"abcdef"))
        );
    }
}
