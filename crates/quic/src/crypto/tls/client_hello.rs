//! Parses a ClientHello for a server before rustls does: an application may decide by the names in it, and
//! the version of the answer depends on the
//! client's transport parameters (RFC 9368, section 2.3), and a rustls connection is created for
//! one version.

use crate::codec::{Reader, Truncated};
use crate::crypto::{ClientNames, ClientOffer};

/// RFC 6066, section 3.
const SERVER_NAME: u16 = 0;
/// RFC 7301, section 3.1.
const APPLICATION_PROTOCOLS: u16 = 16;
/// RFC 8446, section 4.2.
const EARLY_DATA: u16 = 42;
/// RFC 9001, section 8.2.
const QUIC_TRANSPORT_PARAMETERS: u16 = 57;

/// Returns the offer in the body of a ClientHello (RFC 8446, section 4.1.2). A malformed one offers
/// nothing: rustls, which parses it next, selects the right alert.
pub(super) fn offer(body: &[u8]) -> ClientOffer<'_> {
    read(body).unwrap_or(ClientOffer {
        parameters: &[],
        early_data: false,
    })
}

/// Returns the names in the body of a ClientHello; `None` for a malformed one.
pub(super) fn names(body: &[u8]) -> Option<ClientNames> {
    let mut extensions = extensions(body).ok()?;
    let mut names = ClientNames::default();
    while !extensions.is_empty() {
        let (kind, value) = extension(&mut extensions).ok()?;
        match kind {
            SERVER_NAME => names.server_name = Some(server_name(value)?),
            APPLICATION_PROTOCOLS => names.application_protocols = protocols(value).ok()?,
            _ => {}
        }
    }
    Some(names)
}

/// Returns the first name of the list; others have no meaning.
fn server_name(value: &[u8]) -> Option<String> {
    const HOST_NAME: u8 = 0;
    let mut reader = Reader::new(value);
    let _length = reader.u16().ok()?;
    let is_host = reader.u8().ok()? == HOST_NAME;
    let length = usize::from(reader.u16().ok()?);
    let name = reader.bytes(length).ok().filter(|_| is_host)?;
    std::str::from_utf8(name).ok().map(str::to_owned)
}

fn protocols(value: &[u8]) -> Result<Vec<Vec<u8>>, Truncated> {
    let mut reader = Reader::new(value);
    let length = usize::from(reader.u16()?);
    let mut list = Reader::new(reader.bytes(length)?);
    let mut protocols = Vec::new();
    while !list.is_empty() {
        let length = usize::from(list.u8()?);
        protocols.push(list.bytes(length)?.to_vec());
    }
    Ok(protocols)
}

/// Returns the next extension's type and content.
fn extension<'h>(extensions: &mut Reader<'h>) -> Result<(u16, &'h [u8]), Truncated> {
    let kind = extensions.u16()?;
    let length = usize::from(extensions.u16()?);
    Ok((kind, extensions.bytes(length)?))
}

/// Returns the extensions of a ClientHello.
fn extensions(body: &[u8]) -> Result<Reader<'_>, Truncated> {
    let mut reader = Reader::new(body);
    let (_version, _random) = (reader.u16()?, reader.array::<32>()?);
    let session_id = usize::from(reader.u8()?);
    reader.bytes(session_id)?;
    let cipher_suites = usize::from(reader.u16()?);
    reader.bytes(cipher_suites)?;
    let compression_methods = usize::from(reader.u8()?);
    reader.bytes(compression_methods)?;
    let extensions = usize::from(reader.u16()?);
    Ok(Reader::new(reader.bytes(extensions)?))
}

fn read(body: &[u8]) -> Result<ClientOffer<'_>, Truncated> {
    let mut extensions = extensions(body)?;
    let mut offer = ClientOffer {
        parameters: &[],
        early_data: false,
    };
    while !extensions.is_empty() {
        let (kind, value) = extension(&mut extensions)?;
        match kind {
            EARLY_DATA => offer.early_data = true,
            QUIC_TRANSPORT_PARAMETERS => offer.parameters = value,
            _ => {}
        }
    }
    Ok(offer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut hello = vec![3, 3];
        hello.extend([7; 32]);
        hello.extend([1, 9]);
        hello.extend([0, 2, 0x13, 0x01]);
        hello.extend([1, 0]);
        hello.extend((extensions.len() as u16).to_be_bytes());
        hello.extend(extensions);
        hello
    }

    #[test]
    fn parameters_and_early_data_are_found_in_the_extensions() {
        let hello = hello(&[0, 10, 0, 2, 5, 5, 0, 57, 0, 3, 1, 2, 3, 0, 42, 0, 0]);
        let offer = offer(&hello);
        assert_eq!((offer.parameters, offer.early_data), (&[1, 2, 3][..], true));
    }

    #[test]
    fn names_are_found_in_the_extensions() {
        let sni = [0, 0, 0, 9, 0, 7, 0, 0, 4, b'h', b'o', b's', b't'];
        let alpn = [0, 16, 0, 8, 0, 6, 2, b'h', b'3', 2, b'h', b'q'];
        let whole = hello(&[&sni[..], &alpn].concat());
        let names = names(&whole).unwrap();
        assert_eq!(names.server_name.as_deref(), Some("host"));
        assert_eq!(names.application_protocols, [b"h3", b"hq"]);
        for end in 0..whole.len() {
            assert_eq!(super::names(&whole[..end]), None);
        }
        assert_eq!(super::names(&hello(&[])), Some(ClientNames::default()));
    }

    #[test]
    fn a_truncated_client_hello_offers_nothing() {
        let whole = hello(&[0, 42, 0, 0, 0, 57, 0, 3, 1, 2, 3]);
        for end in 0..whole.len() {
            let offer = offer(&whole[..end]);
            assert!(offer.parameters.is_empty() && !offer.early_data);
        }
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_bytes_never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            offer(&body);
            names(&body);
        }
    }
}
