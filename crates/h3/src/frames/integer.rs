//! Variable-length integers (RFC 9000, section 16) that arrive byte by byte.

/// An integer, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Integer {
    value: u64,
    /// How many bytes are missing, after the first one.
    missing: u8,
    has_begun: bool,
}

impl Integer {
    /// Adds a byte; returns the value with the last one.
    pub(crate) fn push(&mut self, byte: u8) -> Option<u64> {
        if self.has_begun {
            self.value = self.value << 8 | u64::from(byte);
            self.missing = self.missing.saturating_sub(1);
        } else {
            self.value = u64::from(byte & 0x3f);
            self.missing = (1 << (byte >> 6)) - 1;
            self.has_begun = true;
        }
        (self.missing == 0).then_some(self.value)
    }

    /// Reads an integer at the begin of bytes, and removes it; `None` where bytes are missing.
    pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
        let mut integer = Self::default();
        loop {
            let (first, rest) = bytes.split_first()?;
            *bytes = rest;
            if let Some(value) = integer.push(*first) {
                return Some(value);
            }
        }
    }
}
