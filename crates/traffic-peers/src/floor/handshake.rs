//! TLS over the floor's datagrams: rustls's messages as records, each under its own keys.

use rustls::quic::{Connection, KeyChange, Keys};
use weir_traffic::calls::Error;

use super::packet::{Kind, Record, Sealer, append_plain};

/// A TLS handshake in progress.
pub(super) struct Handshake {
    tls: Connection,
    keys: Option<HandshakeKeys>,
    data_keys: Option<Keys>,
}

struct HandshakeKeys {
    local: Sealer,
    remote: Box<dyn rustls::quic::PacketKey>,
}

impl Handshake {
    pub(super) fn new(tls: Connection) -> Self {
        Self {
            tls,
            keys: None,
            data_keys: None,
        }
    }

    /// Returns the data keys once the handshake is complete.
    pub(super) fn finish(&mut self) -> Option<Keys> {
        if self.tls.is_handshaking() {
            return None;
        }
        self.data_keys.take()
    }

    /// Processes a record. Call [`Handshake::write`] before the next one: it installs the keys.
    pub(super) fn read(&mut self, record: Record<'_>) -> Result<(), Error> {
        match (record.kind, &self.keys) {
            (Kind::Initial, _) => self.tls.read_hs(record.plain())?,
            (Kind::Handshake, Some(keys)) => self.tls.read_hs(record.open(&*keys.remote)?)?,
            _ => return Err(Error::MalformedRequest),
        }
        Ok(())
    }

    /// Appends TLS's pending messages as records.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let mut message = Vec::new();
            let change = self.tls.write_hs(&mut message);
            if !message.is_empty() {
                match &mut self.keys {
                    // Session tickets, which follow the data keys, are dropped: the floor does not resume.
                    _ if self.data_keys.is_some() => {}
                    Some(keys) => keys.local.append(Kind::Handshake, &message, out)?,
                    None => append_plain(&message, out)?,
                }
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.keys = Some(HandshakeKeys {
                        local: Sealer::new(keys.local),
                        remote: keys.remote.packet,
                    });
                }
                Some(KeyChange::OneRtt { keys, .. }) => self.data_keys = Some(keys),
                None if message.is_empty() => return Ok(()),
                None => {}
            }
        }
    }
}
