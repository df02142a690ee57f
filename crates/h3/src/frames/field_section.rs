//! Field sections as QPACK without a dynamic table encodes them (RFC 9204, section 4.5): which
//! pseudo-header fields they have, and where (RFC 9114, section 4.3).

use super::Violation;

/// A kind of field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Request,
    Response,
    Trailers,
}

/// The name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    Status,
    UnknownPseudo,
    Regular,
}

/// The entries of the static table (RFC 9204, appendix A).
const STATIC_ENTRIES: u64 = 99;
/// Those that say `:status: 103` and `:status: 100`.
const INTERIM_ENTRIES: [u64; 2] = [24, 63];

const TRUNCATED: Violation = Violation::FieldSection("it ends within a field");
const DYNAMIC: Violation = Violation::FieldSection("it refers to a dynamic table");

/// Checks a section; returns whether it is that of an interim response.
pub(super) fn check(section: Section, mut rest: &[u8]) -> Result<bool, Violation> {
    if integer(&mut rest, 8)? != 0 {
        return Err(DYNAMIC);
    }
    if rest.first().is_some_and(|first| first & 0x80 != 0) {
        return Err(Violation::FieldSection("its base is negative"));
    }
    integer(&mut rest, 7)?;
    let mut seen = Vec::with_capacity(5);
    let mut has_regular = false;
    let mut is_interim = false;
    while let Some(first) = rest.first() {
        let field = Field::take(*first, &mut rest)?;
        if field.name == Name::Regular {
            has_regular = true;
            continue;
        }
        if has_regular {
            return Err(Violation::Malformed("a pseudo-header field after others"));
        }
        if !section.allows(field.name) {
            return Err(Violation::Malformed("a pseudo-header field out of place"));
        }
        if seen.contains(&field.name) {
            return Err(Violation::Malformed("a pseudo-header field twice"));
        }
        seen.push(field.name);
        is_interim |= field.is_interim;
    }
    Ok(is_interim)
}

impl Section {
    fn allows(self, name: Name) -> bool {
        match name {
            Name::Regular => true,
            Name::Status => self == Self::Response,
            Name::UnknownPseudo => false,
            _ => self == Self::Request,
        }
    }
}

/// A field line.
struct Field {
    name: Name,
    /// Whether it is the status of an interim response.
    is_interim: bool,
}

impl Field {
    fn take(first: u8, rest: &mut &[u8]) -> Result<Self, Violation> {
        let is_static = |bit: u8| {
            if first & bit == 0 {
                Err(DYNAMIC)
            } else {
                Ok(())
            }
        };
        if first & 0x80 != 0 {
            is_static(0x40)?;
            let index = integer(rest, 6)?;
            return Ok(Self {
                name: Name::of_entry(index)?,
                is_interim: INTERIM_ENTRIES.contains(&index),
            });
        }
        let name = if first & 0x40 != 0 {
            is_static(0x10)?;
            Name::of_entry(integer(rest, 4)?)?
        } else if first & 0x20 != 0 {
            let is_huffman = first & 0x08 != 0;
            Name::of_literal(is_huffman, string(rest, 3)?)
        } else {
            return Err(DYNAMIC);
        };
        let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
        let value = string(rest, 7)?;
        let is_interim = name == Name::Status && begins_with_one(is_huffman, value);
        Ok(Self { name, is_interim })
    }
}

/// Whether the first character is "1"; its Huffman code is 00001 (RFC 7541, appendix B).
fn begins_with_one(is_huffman: bool, value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or_default();
    if is_huffman {
        first >> 3 == 0b00001
    } else {
        first == b'1'
    }
}

impl Name {
    fn of_entry(index: u64) -> Result<Self, Violation> {
        Ok(match index {
            0 => Self::Authority,
            1 => Self::Path,
            15..=21 => Self::Method,
            22 | 23 => Self::Scheme,
            24..=28 | 63..=71 => Self::Status,
            STATIC_ENTRIES.. => {
                return Err(Violation::FieldSection("no such entry in the static table"));
            }
            _ => Self::Regular,
        })
    }

    fn of_literal(is_huffman: bool, name: &[u8]) -> Self {
        if is_huffman {
            Self::of_code(name)
        } else {
            Self::of_text(name)
        }
    }

    fn of_text(name: &[u8]) -> Self {
        match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":status" => Self::Status,
            [b':', ..] => Self::UnknownPseudo,
            _ => Self::Regular,
        }
    }

    /// The same names in Huffman code (RFC 7541, appendix B), in which ":" is 1011100.
    fn of_code(name: &[u8]) -> Self {
        match name {
            b"\xb9\x49\x53\x39\xe4" => Self::Method,
            b"\xb8\x82\x4e\x5a\x4b" => Self::Scheme,
            b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f" => Self::Authority,
            b"\xb9\x58\xd3\x3f" => Self::Path,
            b"\xb8\x84\x8d\x36\xa3" => Self::Status,
            [first, ..] if first >> 1 == 0b101_1100 => Self::UnknownPseudo,
            _ => Self::Regular,
        }
    }
}

/// Takes an integer whose first part is in the low bits of a byte (RFC 9204, section 4.1.1).
fn integer(rest: &mut &[u8], bits: u32) -> Result<u64, Violation> {
    let mut take = || {
        let (first, others) = rest.split_first().ok_or(TRUNCATED)?;
        *rest = others;
        Ok(u64::from(*first))
    };
    let most = (1 << bits) - 1;
    let mut value = take()? & most;
    if value < most {
        return Ok(value);
    }
    // No decoder has to take more than 62 bits.
    for shift in (0..62).step_by(7) {
        let byte = take()?;
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Violation::FieldSection("an integer is too large"))
}

/// Takes a string, as it is encoded (RFC 9204, section 4.1.2).
fn string<'a>(rest: &mut &'a [u8], bits: u32) -> Result<&'a [u8], Violation> {
    let length = integer(rest, bits)?;
    let length = usize::try_from(length).map_err(|_| TRUNCATED)?;
    let (string, others) = rest.split_at_checked(length).ok_or(TRUNCATED)?;
    *rest = others;
    Ok(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(name.len()).unwrap();
        let name_length = match length {
            0..7 => vec![0x20 | length],
            _ => vec![0x27, length - 7],
        };
        let value_length = u8::try_from(value.len()).unwrap();
        [&name_length, name, &[value_length], value].concat()
    }

    fn checked(section: Section, lines: &[&[u8]]) -> Result<bool, Violation> {
        check(section, &[b"\0\0", &lines.concat()[..]].concat())
    }

    #[test]
    fn names_are_known_in_every_representation() {
        // Huffman codes of names with the same end as the static table's.
        let twice: [&[&[u8]]; 4] = [
            &[b"\xd1", &literal(b":method", b"GET")],
            &[b"\xd7", b"\x2d\xb8\x82\x4e\x5a\x4b\x01x"],
            &[
                b"\x50\x01x",
                b"\x2f\x01\xb8\x3b\x53\x39\xec\x32\x7d\x7f\x01x",
            ],
            &[b"\xc1", b"\x2c\xb9\x58\xd3\x3f\x01x"],
        ];
        for lines in twice {
            assert_eq!(checked(Section::Request, &lines[..1]), Ok(false));
            assert_eq!(checked(Section::Request, &lines[1..]), Ok(false));
            let wrong = checked(Section::Request, lines);
            assert_eq!(
                wrong,
                Err(Violation::Malformed("a pseudo-header field twice"))
            );
        }
    }

    #[test]
    fn pseudo_header_fields_have_their_place() {
        let place = Err(Violation::Malformed("a pseudo-header field out of place"));
        let (method, status) = (&b"\xd1"[..], &b"\xd9"[..]);
        assert_eq!(checked(Section::Request, &[status]), place);
        assert_eq!(checked(Section::Response, &[method]), place);
        assert_eq!(checked(Section::Trailers, &[method]), place);
        assert_eq!(checked(Section::Trailers, &[status]), place);
        assert_eq!(checked(Section::Request, &[&literal(b":x", b"")]), place);
        // Of extended CONNECT (RFC 9220), which nobody negotiated.
        let protocol = literal(b":protocol", b"websocket");
        assert_eq!(checked(Section::Request, &[&protocol]), place);
        // ":x" in Huffman code.
        assert_eq!(checked(Section::Request, &[b"\x2a\xb9\xe7\x00"]), place);
        let late = checked(Section::Request, &[&literal(b"x", b"y"), method]);
        assert_eq!(
            late,
            Err(Violation::Malformed("a pseudo-header field after others"))
        );
        assert_eq!(
            checked(Section::Trailers, &[&literal(b"x", b"y")]),
            Ok(false)
        );
    }

    #[test]
    fn interim_responses_are_known_by_their_status() {
        for line in [
            &b"\xd8"[..],
            b"\xff\x00",
            &literal(b":status", b"102"),
            b"\x5f\x09\x03100",
            // 103 in Huffman code.
            b"\x5f\x09\x82\x08\x19",
        ] {
            assert_eq!(checked(Section::Response, &[line]), Ok(true), "{line:?}");
        }
        for line in [&b"\xd9"[..], b"\xff\x01", &literal(b":status", b"204")] {
            assert_eq!(checked(Section::Response, &[line]), Ok(false), "{line:?}");
        }
    }

    #[test]
    fn nothing_refers_to_a_dynamic_table() {
        for section in [
            &b"\x01\0"[..],
            b"\0\0\x80",
            b"\0\0\x10",
            b"\0\0\x40\0",
            b"\0\0\x00\0",
        ] {
            let wrong = check(Section::Request, section);
            assert_eq!(wrong, Err(DYNAMIC), "{section:?}");
        }
        for section in [
            &b""[..],
            b"\0",
            b"\0\x80",
            b"\0\0\xff\x24",
            b"\0\0\x21",
            b"\0\0\x21x\x05y",
        ] {
            let wrong = check(Section::Request, section);
            assert!(
                matches!(wrong, Err(Violation::FieldSection(_))),
                "{section:?}"
            );
        }
    }
}
