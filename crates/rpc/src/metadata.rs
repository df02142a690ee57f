//! Metadata: names and values that travel with a request, or with a status.

use bytes::Bytes;

/// The longest name in bytes.
const LONGEST_NAME: usize = 64;

/// Names and values that travel with a request, or with a status. Names are of `a-z`, `0-9`, `-`,
/// `_` and `.`; values are any bytes. A name may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pairs: Vec<(Box<str>, Bytes)>,
}

/// Why a pair is no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The name is empty, too long, or has other characters.
    #[error("a name is 1 to 64 characters of a-z, 0-9, '-', '_' and '.'")]
    Name,
}

impl Metadata {
    /// Returns no metadata.
    pub const fn new() -> Self {
        Self { pairs: Vec::new() }
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// [`MetadataError::Name`] where the name is none.
    pub fn add(&mut self, name: &str, value: impl Into<Bytes>) -> Result<(), MetadataError> {
        if !is_name(name) {
            return Err(MetadataError::Name);
        }
        self.pairs.push((name.into(), value.into()));
        Ok(())
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.values(name).next()
    }

    /// Returns the first value of a name where it is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
            .and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns all values of a name, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &Bytes> {
        let pairs = self.pairs.iter();
        pairs.filter_map(move |(other, value)| (&**other == name).then_some(value))
    }

    /// Returns all pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.pairs.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Removes all values of a name.
    pub fn remove(&mut self, name: &str) {
        self.pairs.retain(|(other, _)| &**other != name);
    }

    /// Appends all pairs of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.pairs.append(&mut other.pairs);
    }
}

fn is_name(name: &str) -> bool {
    let is_character = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_character)
}
