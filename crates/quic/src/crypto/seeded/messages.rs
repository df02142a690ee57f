//! The messages of the toy handshake: TLS 1.3's types and framing, with their own bodies.
//!
//! Bodies are padded with zeros to about the sizes of TLS with X25519, a P-256 certificate and
//! SHA-256.

use bytes::{Buf, BufMut};

use super::mixing::{Secret, mix};
use crate::Version;

pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;
pub(super) const NEW_SESSION_TICKET: u8 = 4;
pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
pub(super) const CERTIFICATE: u8 = 11;
pub(super) const CERTIFICATE_VERIFY: u8 = 15;
pub(super) const FINISHED: u8 = 20;

const SERVER_HELLO_LENGTH: usize = 90;
const CERTIFICATE_VERIFY_LENGTH: usize = 79;
const NEW_SESSION_TICKET_LENGTH: usize = 100;

/// The longest body, so that lengths fit TLS parsers.
const MAX_BODY_LENGTH: usize = 0xffff;

/// The proof that ends each side's handshake.
pub(super) type Proof = [u8; 32];

/// Builds a message of this type and body, padded to `length` bytes in total.
fn message(kind: u8, length: usize, mut body: Vec<u8>) -> Vec<u8> {
    let padded = length.saturating_sub(4).min(MAX_BODY_LENGTH);
    body.resize(body.len().max(padded), 0);
    let mut message = Vec::with_capacity(4 + body.len());
    message.put_u8(kind);
    message.put_uint(body.len() as u64, 3);
    message.put_slice(&body);
    message
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    body.put_u16(bytes.len() as u16);
    body.put_slice(bytes);
}

fn get_bytes(body: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(body.try_get_u16().ok()?);
    let (bytes, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(bytes.to_vec())
}

fn get_bool(body: &mut &[u8]) -> Option<bool> {
    match body.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn only_padding(body: &[u8]) -> Option<()> {
    body.iter().all(|byte| *byte == 0).then_some(())
}

/// A ticket to resume a session: a secret, and a check word by which its server recognizes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    secret: u64,
    check: u64,
}

impl Ticket {
    /// Issues the ticket of a server with this seed for a handshake with this nonce, valid for one
    /// version (RFC 9369, section 5).
    pub(super) fn issue(seed: u64, version: Version, nonce: u64) -> Self {
        let secret = mix(nonce ^ 0x7469_636b);
        Self {
            secret,
            check: Self::check(seed, version, secret),
        }
    }

    /// Whether a server with this seed issued it for this version.
    pub(super) fn is_of(&self, seed: u64, version: Version) -> bool {
        self.check == Self::check(seed, version, self.secret)
    }

    fn check(seed: u64, version: Version, secret: u64) -> u64 {
        let version = u64::from(version.as_u32()) - 1;
        mix(mix(seed ^ version) ^ secret)
    }

    /// Returns the secret from which the resumed session's keys are derived.
    pub(super) fn secret(&self) -> Secret {
        Secret::new(self.secret, self.check)
    }

    fn put(&self, body: &mut Vec<u8>) {
        body.put_u64(self.secret);
        body.put_u64(self.check);
    }

    fn get(body: &mut &[u8]) -> Option<Self> {
        Some(Self {
            secret: body.try_get_u64().ok()?,
            check: body.try_get_u64().ok()?,
        })
    }
}

/// A client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub(super) nonce: u64,
    pub(super) early_data: bool,
    pub(super) ticket: Option<Ticket>,
    pub(super) server_name: String,
    pub(super) parameters: Vec<u8>,
}

impl ClientHello {
    pub(super) fn encode(&self, length: usize) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u64(self.nonce);
        body.put_u8(self.early_data.into());
        body.put_u8(self.ticket.is_some().into());
        if let Some(ticket) = &self.ticket {
            ticket.put(&mut body);
        }
        put_bytes(&mut body, self.server_name.as_bytes());
        put_bytes(&mut body, &self.parameters);
        message(CLIENT_HELLO, length, body)
    }

    pub(super) fn decode(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let nonce = body.try_get_u64().ok()?;
        let early_data = get_bool(body)?;
        let ticket = if get_bool(body)? {
            Some(Ticket::get(body)?)
        } else {
            None
        };
        let hello = Self {
            nonce,
            early_data,
            ticket,
            server_name: String::from_utf8(get_bytes(body)?).ok()?,
            parameters: get_bytes(body)?,
        };
        only_padding(body)?;
        Some(hello)
    }
}

/// A server's answer, the last unencrypted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub(super) nonce: u64,
    pub(super) resumed: bool,
}

impl ServerHello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u64(self.nonce);
        body.put_u8(self.resumed.into());
        message(SERVER_HELLO, SERVER_HELLO_LENGTH, body)
    }

    pub(super) fn decode(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let hello = Self {
            nonce: body.try_get_u64().ok()?,
            resumed: get_bool(body)?,
        };
        only_padding(body)?;
        Some(hello)
    }
}

/// A server's transport parameters and its decision on early data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncryptedExtensions {
    pub(super) early_data: bool,
    pub(super) parameters: Vec<u8>,
}

impl EncryptedExtensions {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u8(self.early_data.into());
        put_bytes(&mut body, &self.parameters);
        message(ENCRYPTED_EXTENSIONS, 0, body)
    }

    pub(super) fn decode(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let extensions = Self {
            early_data: get_bool(body)?,
            parameters: get_bytes(body)?,
        };
        only_padding(body)?;
        Some(extensions)
    }
}

/// Returns a certificate of `length` bytes that certifies nothing.
pub(super) fn certificate(length: usize) -> Vec<u8> {
    message(CERTIFICATE, 0, vec![0x30; length])
}

/// Returns a signature that signs nothing.
pub(super) fn certificate_verify() -> Vec<u8> {
    message(CERTIFICATE_VERIFY, CERTIFICATE_VERIFY_LENGTH, Vec::new())
}

pub(super) fn finished(proof: Proof) -> Vec<u8> {
    message(FINISHED, 0, proof.to_vec())
}

/// A server's ticket for the client's next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewSessionTicket {
    pub(super) ticket: Ticket,
    pub(super) early_data: bool,
}

impl NewSessionTicket {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.ticket.put(&mut body);
        body.put_u8(self.early_data.into());
        message(NEW_SESSION_TICKET, NEW_SESSION_TICKET_LENGTH, body)
    }

    pub(super) fn decode(mut body: &[u8]) -> Option<Self> {
        let body = &mut body;
        let ticket = Self {
            ticket: Ticket::get(body)?,
            early_data: get_bool(body)?,
        };
        only_padding(body)?;
        Some(ticket)
    }
}
