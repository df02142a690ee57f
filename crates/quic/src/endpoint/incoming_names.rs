//! The names that a client which waits for a decision asks for. They are in its Initial packets, whose keys
//! anybody can derive (RFC 9001, section 5.2), or in what the server remembers of a known peer.

use super::Endpoint;
use super::incoming::IncomingId;
use crate::Level;
use crate::crypto::{ClientNames, DirectionKeys};
use crate::frame::{Frame, Frames};
use crate::packet::{self, Header, Kind};

/// The longest ClientHello that is read.
const LONGEST: usize = 16 * 1024;
/// The header of a handshake message: its type, and three bytes of its length (RFC 8446, section 4).
const MESSAGE_HEADER: usize = 4;

impl Endpoint {
    /// Returns the server name and the application protocols that a client asks for, unauthenticated;
    /// `None` if it does not wait any more, or while packets of its ClientHello are missing. It costs the
    /// decryption of what the client has sent so far.
    pub fn incoming_names(&self, id: IncomingId) -> Option<ClientNames> {
        let attempt = self.undecided.get(id)?;
        if let Some(client) = attempt.known_client() {
            let identity = &client.identity;
            return Some(ClientNames {
                server_name: identity.server_name.clone(),
                application_protocols: identity.application_protocol.iter().cloned().collect(),
            });
        }
        let (keys, datagrams) = attempt.initial_packets()?;
        let id_length = self.config.connection_ids.length();
        let mut pieces = Vec::new();
        for datagram in datagrams {
            crypto_pieces(&keys.remote, id_length, datagram.to_vec(), &mut pieces);
        }
        let message = in_order(pieces);
        let (header, rest) = message.split_first_chunk::<MESSAGE_HEADER>()?;
        let length = u32::from_be_bytes(*header) & 0x00ff_ffff;
        let hello = rest.get(..usize::try_from(length).ok()?)?;
        attempt.crypto().names_in(hello)
    }
}

/// Adds the CRYPTO data of the Initial packets in a datagram, with their offsets.
fn crypto_pieces(
    keys: &DirectionKeys,
    id_length: usize,
    mut datagram: Vec<u8>,
    pieces: &mut Vec<(u64, Vec<u8>)>,
) {
    let mut rest = &mut datagram[..];
    while let Ok(header) = Header::decode(rest, id_length) {
        let Some((packet, following)) = rest.split_at_mut_checked(header.end) else {
            return;
        };
        rest = following;
        if header.kind != Kind::Initial {
            continue;
        }
        let Some(payload) = opened(keys, &header, packet) else {
            continue;
        };
        for frame in Frames::new(payload).flatten() {
            if let Frame::Crypto { offset, data } = frame
                && frame.allowed_in(Level::Initial)
            {
                pieces.push((offset, data.to_vec()));
            }
        }
    }
}

fn opened<'p>(keys: &DirectionKeys, header: &Header, packet: &'p mut [u8]) -> Option<&'p [u8]> {
    let number_length = keys.header.unprotect(header.number_offset, packet)?;
    let truncated = packet::read_packet_number(packet, header.number_offset, number_length)?;
    let number = packet::expand_packet_number(truncated, number_length, 0);
    let (head, payload) = packet.split_at_mut_checked(header.number_offset + number_length)?;
    let length = keys.packet.open(number, head, payload).ok()?;
    payload.get(..length)
}

/// Returns the data from offset zero on, up to the first gap.
fn in_order(mut pieces: Vec<(u64, Vec<u8>)>) -> Vec<u8> {
    pieces.sort_by_key(|(offset, _)| *offset);
    let mut message = Vec::new();
    for (offset, data) in pieces {
        let known = (message.len() as u64).checked_sub(offset);
        let new = known.and_then(|known| data.get(usize::try_from(known).ok()?..));
        match new {
            Some(new) if message.len() + new.len() <= LONGEST => message.extend_from_slice(new),
            Some(_) => break,
            // Known already, or after a gap.
            None => {}
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_in_order_up_to_a_gap() {
        let piece = |offset: u64, data: &[u8]| (offset, data.to_vec());
        let pieces = vec![
            piece(9, b"xyz"),
            piece(4, b"efg"),
            piece(0, b"abc"),
            piece(2, b"cde"),
            piece(1, b"b"),
        ];
        assert_eq!(in_order(pieces), b"abcdefg");
        assert_eq!(in_order(vec![piece(1, b"b"), piece(u64::MAX, b"c")]), b"");
        assert_eq!(in_order(vec![piece(0, &vec![1; LONGEST + 1])]), b"");
    }
}
