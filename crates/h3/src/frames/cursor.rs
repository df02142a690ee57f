//! Bytes that arrived, some of which pass.

use bytes::{Buf, Bytes};

/// A place in a chunk: the bytes before it pass, if they were not cut out.
pub(super) struct Cursor<'a> {
    input: &'a mut Bytes,
    /// So many bytes at the begin of the input pass.
    passing: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(input: &'a mut Bytes) -> Self {
        Self { input, passing: 0 }
    }

    /// Returns what comes next.
    pub(super) fn coming(&self) -> &[u8] {
        &self.input[self.passing..]
    }

    /// Lets up to so many bytes pass; returns how many there were.
    pub(super) fn pass(&mut self, most: u64) -> u64 {
        let length = most.min(self.coming().len() as u64);
        self.passing += length as usize;
        length
    }

    /// Returns what passes, if anything.
    pub(super) fn passed(&mut self) -> Option<Bytes> {
        let length = std::mem::take(&mut self.passing);
        (length > 0).then(|| self.input.split_to(length))
    }

    /// Returns what passes, and cuts out so many bytes behind it, as far as they are there.
    pub(super) fn cut(&mut self, length: usize) -> Option<Bytes> {
        let passed = self.passed();
        self.input.advance(length.min(self.input.len()));
        passed
    }
}
