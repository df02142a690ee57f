//! Parses a ClientHello for a server before rustls does: the version of the answer depends on the
//! client's transport parameters (RFC 9368, section 2.3), and a rustls connection is created for
//! one version.

use crate::codec::{Reader, Truncated};
use crate::crypto::ClientOffer;

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

fn read(body: &[u8]) -> Result<ClientOffer<'_>, Truncated> {
    let mut reader = Reader::new(body);
    let (_version, _random) = (reader.u16()?, reader.array::<32>()?);
    let session_id = usize::from(reader.u8()?);
    reader.bytes(session_id)?;
    let cipher_suites = usize::from(reader.u16()?);
    reader.bytes(cipher_suites)?;
    let compression_methods = usize::from(reader.u8()?);
    reader.bytes(compression_methods)?;
    let extensions = usize::from(reader.u16()?);
    let mut extensions = Reader::new(reader.bytes(extensions)?);
    let mut offer = ClientOffer {
        parameters: &[],
        early_data: false,
    };
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let length = usize::from(extensions.u16()?);
        let value = extensions.bytes(length)?;
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
        }
    }
}
