//! Concatenation of a stream's chunks.

use bytes::Bytes;

/// The chunks read so far. They are concatenated once, at the end; a single chunk is not copied.
#[derive(Debug, Default)]
pub(crate) struct ReadChunks {
    first: Bytes,
    more: Vec<Bytes>,
    length: usize,
}

impl ReadChunks {
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.length += chunk.len();
        if self.first.is_empty() {
            self.first = chunk;
        } else {
            self.more.push(chunk);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        let mut all = Vec::with_capacity(self.length);
        all.extend_from_slice(&self.first);
        self.more
            .iter()
            .for_each(|chunk| all.extend_from_slice(chunk));
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_in_order_and_a_single_chunk_is_not_copied() {
        let piece = Bytes::from_static(b"one");
        let mut chunks = ReadChunks::default();
        chunks.push(piece.clone());
        assert_eq!(chunks.into_bytes().as_ptr(), piece.as_ptr());
        let mut chunks = ReadChunks::default();
        for piece in ["a", "bc", "", "def"] {
            chunks.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!(
            (chunks.len(), chunks.into_bytes()),
            (6, Bytes::from_static(b"abcdef"))
        );
    }
}
