//! The request, the reply, and the check that the reply is complete and correct.
//!
//! A request is [`Request::LENGTH`] bytes of JSON that contain the size of the reply. A reply of up
//! to [`Library::LARGEST_DOCUMENT`] bytes is one JSON document of exactly that size, always the
//! same for the same size. A longer reply repeats a document of that largest size, truncated to
//! fit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::calls::error::Error;

/// A request for a reply of a given size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The size of the reply in bytes.
    pub size: u64,
}

const HEAD: &[u8] =
    b"{\"method\":\"document.read\",\"trace\":\"00f067aa0ba902b7a3ce929d0e0e4736\",\"size\":\"";
const DIGITS: usize = 16;
const TAIL: &[u8] = b"\",\"accept\":\"json\"}";

impl Request {
    /// The size of an encoded request in bytes.
    pub const LENGTH: usize = HEAD.len() + DIGITS + TAIL.len();

    /// The largest reply that can be requested: 1 TB.
    pub const LARGEST: u64 = 1_000_000_000_000;

    /// Encodes the request.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut out = [0; Self::LENGTH];
        let (head, rest) = out.split_at_mut(HEAD.len());
        let (digits, tail) = rest.split_at_mut(DIGITS);
        head.copy_from_slice(HEAD);
        tail.copy_from_slice(TAIL);
        let mut value = self.size;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
        out
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// [`Error::MalformedRequest`] for anything but an encoded request of at most
    /// [`Request::LARGEST`] bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let digits = bytes
            .strip_prefix(HEAD)
            .and_then(|rest| rest.strip_suffix(TAIL))
            .filter(|digits| digits.len() == DIGITS)
            .ok_or(Error::MalformedRequest)?;
        let mut size = 0_u64;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(Error::MalformedRequest);
            }
            size = size * 10 + u64::from(digit - b'0');
        }
        if size > Self::LARGEST {
            return Err(Error::MalformedRequest);
        }
        Ok(Self { size })
    }
}

/// The documents of the replies, each generated once.
#[derive(Debug, Default)]
pub struct Library {
    documents: Mutex<BTreeMap<usize, Bytes>>,
}

impl Library {
    /// The size of the largest single document in bytes; longer replies repeat it.
    pub const LARGEST_DOCUMENT: usize = 2 * 1024 * 1024;

    /// The maximum number of cached documents; further ones are generated for each request.
    const KEPT: usize = 64;

    /// Returns the document of exactly `size` bytes.
    fn document(&self, size: usize) -> Bytes {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(document) = documents.get(&size) {
            return document.clone();
        }
        let document = Bytes::from(generate(size));
        if documents.len() < Self::KEPT {
            documents.insert(size, document.clone());
        }
        document
    }

    /// Returns the reply to a request, as chunks that share the library's memory.
    #[must_use]
    pub fn reply(&self, request: Request) -> Reply {
        let single = usize::try_from(request.size).unwrap_or(usize::MAX);
        Reply {
            document: self.document(single.min(Self::LARGEST_DOCUMENT)),
            remaining: request.size,
        }
    }
}

/// The unsent rest of a reply. Iterates over its chunks.
#[derive(Clone, Debug)]
pub struct Reply {
    document: Bytes,
    remaining: u64,
}

impl Reply {
    /// Returns the number of unsent bytes.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }
}

impl Iterator for Reply {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.remaining == 0 {
            return None;
        }
        let mut chunk = self.document.clone();
        if self.remaining < chunk.len() as u64 {
            chunk.truncate(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        }
        self.remaining -= chunk.len() as u64;
        Some(chunk)
    }
}

/// Generates a JSON value of exactly `size` bytes (empty for 0).
fn generate(size: usize) -> Vec<u8> {
    const OPEN: &str = "{\"records\":[";
    const CLOSE: &str = "],\"padding\":\"";
    const END: &str = "\"}";
    let frame = OPEN.len() + CLOSE.len() + END.len();
    if size < frame {
        return match size {
            0 => Vec::new(),
            1 => b"0".to_vec(),
            _ => [b"\"".as_slice(), &vec![b'.'; size - 2], b"\""].concat(),
        };
    }
    let mut text = String::with_capacity(size);
    text.push_str(OPEN);
    let mut record = String::new();
    // A fixed linear congruential sequence (Knuth's MMIX constants): varied and deterministic.
    let mut state = size as u64;
    for id in 0_u32.. {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        record.clear();
        let separator = if id == 0 { "" } else { "," };
        let _ = write!(
            record,
            "{separator}{{\"id\":{id},\"key\":\"{state:016x}\",\"load\":{}.{:03},\"up\":{}}}",
            state >> 58,
            (state >> 40) % 1000,
            state >> 63 == 0,
        );
        if text.len() + record.len() + CLOSE.len() + END.len() > size {
            break;
        }
        text.push_str(&record);
    }
    text.push_str(CLOSE);
    let padding = size - text.len() - END.len();
    text.extend(std::iter::repeat_n('.', padding));
    text.push_str(END);
    text.into_bytes()
}

/// Counts a reply as it arrives, and optionally compares it with the expected content.
#[derive(Debug)]
pub struct Body {
    expected: u64,
    received: u64,
    reference: Option<Bytes>,
    differs_at: Option<u64>,
}

impl Body {
    /// Returns a body that counts the reply to `request`.
    #[must_use]
    pub fn counting(request: Request) -> Self {
        Self {
            expected: request.size,
            received: 0,
            reference: None,
            differs_at: None,
        }
    }

    /// Returns a body that counts the reply to `request` and compares each byte.
    #[must_use]
    pub fn comparing(request: Request, library: &Library) -> Self {
        Self {
            reference: Some(library.reply(request).document),
            ..Self::counting(request)
        }
    }

    /// Adds the next bytes of the reply.
    pub fn take(&mut self, chunk: &[u8]) {
        if let Some(reference) = &self.reference
            && self.differs_at.is_none()
            && !continues(reference, self.received, chunk)
        {
            self.differs_at = Some(self.received);
        }
        self.received += chunk.len() as u64;
    }

    /// Returns the number of missing bytes.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    /// Returns whether all requested bytes have arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.received >= self.expected
    }

    /// Checks that the reply is complete and correct.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Content`].
    pub fn verify(&self) -> Result<(), Error> {
        if self.received != self.expected {
            return Err(Error::Length {
                received: self.received,
                expected: self.expected,
            });
        }
        match self.differs_at {
            Some(at) => Err(Error::Content { at }),
            None => Ok(()),
        }
    }
}

/// Returns whether `chunk` matches an endless repetition of `document` at `offset`.
fn continues(document: &[u8], offset: u64, mut chunk: &[u8]) -> bool {
    if document.is_empty() {
        return chunk.is_empty();
    }
    let mut at = usize::try_from(offset % document.len() as u64).unwrap_or(0);
    while !chunk.is_empty() {
        let (_, rest) = document.split_at(at);
        let length = rest.len().min(chunk.len());
        let (head, tail) = chunk.split_at(length);
        if !rest.starts_with(head) {
            return false;
        }
        chunk = tail;
        at = 0;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn requests_round_trip(size in 0..=Request::LARGEST) {
            let request = Request { size };
            prop_assert_eq!(Request::decode(&request.encode()).unwrap(), request);
        }

        #[test]
        fn a_request_with_one_byte_changed_is_refused_or_another_size(
            size in 0..=Request::LARGEST, at in 0..Request::LENGTH, byte: u8,
        ) {
            let mut bytes = Request { size }.encode();
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            if let Ok(other) = Request::decode(&bytes) {
                prop_assert!(other.size != size && other.size <= Request::LARGEST);
            }
        }

        #[test]
        fn documents_are_json_of_exactly_the_size(size in 1_usize..20_000) {
            let document = generate(size);
            prop_assert_eq!(document.len(), size);
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&document).is_ok());
        }

        #[test]
        fn a_body_accepts_its_reply_in_any_chunks(
            size in 0_u64..5_000_000, cuts in prop::collection::vec(1_usize..700_000, 1..20),
        ) {
            let library = Library::default();
            let request = Request { size };
            let whole: Vec<u8> = library.reply(request).flatten().collect();
            prop_assert_eq!(whole.len() as u64, size);
            let mut body = Body::comparing(request, &library);
            let mut rest = whole.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                prop_assert!(!body.is_complete());
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                body.take(head);
                rest = tail;
            }
            prop_assert!(body.is_complete());
            prop_assert!(body.verify().is_ok());
        }
    }

    #[test]
    fn a_body_refuses_an_unexpected_reply() {
        let library = Library::default();
        let request = Request { size: 10_000 };
        let whole: Vec<u8> = library.reply(request).flatten().collect();

        let mut short = Body::comparing(request, &library);
        short.take(&whole[1..]);
        assert!(matches!(short.verify(), Err(Error::Length { .. })));

        let mut changed = whole.clone();
        changed[5000] ^= 1;
        let mut wrong = Body::comparing(request, &library);
        wrong.take(&changed);
        assert!(matches!(wrong.verify(), Err(Error::Content { .. })));

        let mut counted = Body::counting(request);
        counted.take(&changed);
        assert!(counted.verify().is_ok());
        counted.take(b"x");
        assert!(matches!(counted.verify(), Err(Error::Length { .. })));
    }
}
