//! Variable-length integers (RFC 9000, section 16) and a bounds-checked reader.

/// The largest value of a variable-length integer.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Returns the size of `value` as a variable-length integer, in bytes.
pub const fn varint_size(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `value` in its shortest encoding. A value above [`VARINT_MAX`] is a bug of the caller;
/// it is written as `VARINT_MAX`.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= VARINT_MAX, "{value} is no varint");
    match varint_size(value) {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value.min(VARINT_MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Up to `N / 8` variable-length integers, to be appended to a packet at once.
pub(crate) struct Varints<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Varints<N> {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, value: u64) {
        debug_assert!(value <= VARINT_MAX, "{value} is no varint");
        match varint_size(value) {
            1 => self.put_bytes([value as u8]),
            2 => self.put_bytes((value as u16 | 0x4000).to_be_bytes()),
            4 => self.put_bytes((value as u32 | 0x8000_0000).to_be_bytes()),
            _ => self.put_bytes((value.min(VARINT_MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }

    #[inline(always)]
    fn put_bytes<const SIZE: usize>(&mut self, bytes: [u8; SIZE]) {
        let room = self.bytes.get_mut(self.length..);
        let Some(place) = room.and_then(|room| room.first_chunk_mut()) else {
            debug_assert!(false, "more integers than there is room for");
            return;
        };
        *place = bytes;
        self.length += SIZE;
    }

    /// Returns their bytes.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length.min(N)]
    }
}

/// Appends several variable-length integers.
pub(crate) fn put_varints<const N: usize>(out: &mut Vec<u8>, values: [u64; N]) {
    for value in values {
        put_varint(out, value);
    }
}

/// The data ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// Reads numbers in network byte order from the start of a slice. A failed read consumes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    /// Returns the number of consumed bytes.
    pub const fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Returns the number of remaining bytes.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the remaining bytes without consuming them.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether no bytes remain.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads the next byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads the next two bytes.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads the next four bytes.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a variable-length integer, which need not be in its shortest form.
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let first = *self.rest.first().ok_or(Truncated)?;
        // In the order of their frequency; a match would be compiled as a jump.
        if first < 0x40 {
            self.u8().map(u64::from)
        } else if first < 0x80 {
            self.u16().map(|bits| u64::from(bits & 0x3fff))
        } else if first < 0xc0 {
            self.u32().map(|bits| u64::from(bits & 0x3fff_ffff))
        } else {
            let bytes = self.array();
            bytes.map(|bytes| u64::from_be_bytes(bytes) & VARINT_MAX)
        }
    }

    /// Reads a variable-length integer and as many bytes as its value.
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let mut ahead = *self;
        let length = ahead.varint()?;
        let bytes = ahead.bytes(usize::try_from(length).map_err(|_| Truncated)?)?;
        *self = ahead;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn varints_decode_as_in_rfc_9000_appendix_a_1() {
        let cases: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.is_empty());
            for end in 0..bytes.len() {
                let mut short = Reader::new(&bytes[..end]);
                assert_eq!(short.varint(), Err(Truncated));
                assert_eq!(short.position(), 0);
            }
        }
    }

    #[test]
    fn varints_take_the_sizes_of_rfc_9000_table_4() {
        let cases = [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            (1_073_741_823, 4),
            (1_073_741_824, 8),
            (VARINT_MAX, 8),
        ];
        for (value, size) in cases {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!((out.len(), varint_size(value)), (size, size));
        }
    }

    #[test]
    fn a_failed_read_consumes_nothing() {
        let mut reader = Reader::new(&[0x05, 1, 2]);
        assert_eq!(reader.length_prefixed(), Err(Truncated));
        assert_eq!(reader.u32(), Err(Truncated));
        assert_eq!(reader.bytes(usize::MAX), Err(Truncated));
        assert_eq!(reader.rest(), [0x05, 1, 2]);
        assert_eq!(reader.u16(), Ok(0x0501));
        assert_eq!((reader.position(), reader.remaining()), (2, 1));
    }

    proptest! {
        #[test]
        fn varints_round_trip(value in 0..=VARINT_MAX, shift in 0..62u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.is_empty());
        }
    }
}
