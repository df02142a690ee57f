//! The supported versions of QUIC, and the version of a connection (RFC 9000, RFC 9368, RFC 9369).
//!
//! Version 2 is version 1 with other numbers on the wire, so that middleboxes do not rely on those
//! of version 1; it is neither faster nor safer. The two are compatible (RFC 9369, section 3): a
//! server can answer a first flight of one in the other without an extra round trip.

use std::fmt;

use smallvec::SmallVec;

/// A version of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// QUIC version 1 (RFC 9000).
    #[default]
    V1,
    /// QUIC version 2 (RFC 9369).
    V2,
}

impl Version {
    /// Returns the version with this number; `None` if it is not supported.
    pub const fn from_wire(number: u32) -> Option<Self> {
        match number {
            0x0000_0001 => Some(Self::V1),
            0x6b33_43cf => Some(Self::V2),
            _ => None,
        }
    }

    /// Returns the version's number in long headers.
    pub const fn as_u32(self) -> u32 {
        match self {
            Self::V1 => 0x0000_0001,
            Self::V2 => 0x6b33_43cf,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "QUIC version 1",
            Self::V2 => "QUIC version 2",
        })
    }
}

/// One or more versions, each once, in order of preference.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    first: Version,
    /// Whether the other version is included.
    both: bool,
}

impl Versions {
    /// Version 1 only.
    pub const V1: Self = Self::only(Version::V1);
    /// Both versions, version 1 preferred.
    pub const V1_AND_V2: Self = Self::all(Version::V1);
    /// Both versions, version 2 preferred.
    pub const V2_AND_V1: Self = Self::all(Version::V2);

    /// Returns one version only.
    pub const fn only(version: Version) -> Self {
        Self {
            first: version,
            both: false,
        }
    }

    /// Returns all versions, with this one preferred.
    pub const fn all(preferred: Version) -> Self {
        Self {
            first: preferred,
            both: true,
        }
    }

    /// Returns the versions, the preferred one first.
    pub fn iter(self) -> impl Iterator<Item = Version> {
        let other = match self.first {
            Version::V1 => Version::V2,
            Version::V2 => Version::V1,
        };
        [Some(self.first), self.both.then_some(other)]
            .into_iter()
            .flatten()
    }

    /// Whether the version is included.
    pub fn contains(self, version: Version) -> bool {
        self.both || version == self.first
    }

    /// Returns the most preferred version that `offered` includes.
    pub(crate) fn choose(self, offered: &[u32]) -> Option<Version> {
        self.iter()
            .find(|version| offered.contains(&version.as_u32()))
    }

    /// Returns their numbers, the preferred one first.
    pub(crate) fn numbers(self) -> SmallVec<[u32; 4]> {
        self.iter().map(Version::as_u32).collect()
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Formats version numbers for people.
pub(crate) fn format_versions(numbers: &[u32]) -> String {
    let words = numbers
        .iter()
        .map(|number| match Version::from_wire(*number) {
            Some(version) => version.to_string(),
            None => format!("{number:#010x}"),
        });
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_version_among_those_offered_is_chosen() {
        let [v1, v2] = [Version::V1, Version::V2].map(Version::as_u32);
        assert_eq!(Versions::V1_AND_V2.choose(&[v2, v1]), Some(Version::V1));
        assert_eq!(Versions::V2_AND_V1.choose(&[v1, v2]), Some(Version::V2));
        assert_eq!(Versions::V2_AND_V1.choose(&[v1]), Some(Version::V1));
        assert_eq!(Versions::V1.choose(&[v2, 0x1a2a_3a4a]), None);
        assert_eq!(Versions::V1.numbers()[..], [v1]);
        assert!(!Versions::V1.contains(Version::V2));
    }

    #[test]
    fn versions_are_formatted_by_name() {
        assert_eq!(
            format_versions(&[1, 0xff00_001d]),
            "QUIC version 1, 0xff00001d"
        );
        assert_eq!(format_versions(&[]), "nothing");
    }
}
