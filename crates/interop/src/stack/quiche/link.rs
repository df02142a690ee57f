//! One connection.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use quiche::{Connection, ConnectionId, RecvInfo, SendInfo};
use tokio::sync::Notify;
use weir_traffic_peers::quiche::{ID_LENGTH, new_connection_id};

use super::super::Facts;

/// Bytes read from a stream at once.
const READ_BUFFER: usize = 64 * 1024;
/// `ssl_early_data_accepted`: BoringSSL's word for what became of early data.
const EARLY_DATA_ACCEPTED: u32 = 2;

/// A connection, and what is to be sent back on it.
pub(super) struct Link {
    pub(super) quiche: RefCell<Connection>,
    /// Something may have changed.
    pub(super) changed: Notify,
    /// Streams that are being sent back: what is left, and whether all of it is there.
    echoes: RefCell<BTreeMap<u64, (Vec<u8>, bool)>>,
    /// The connection ID of the client's own choice, in its first packets.
    first_id: RefCell<Option<ConnectionId<'static>>>,
    got_early_data: Cell<bool>,
}

impl Link {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            quiche: RefCell::new(connection),
            changed: Notify::new(),
            echoes: RefCell::default(),
            first_id: RefCell::default(),
            got_early_data: Cell::new(false),
        }
    }

    pub(super) fn set_first_id(&self, id: ConnectionId<'static>) {
        *self.first_id.borrow_mut() = Some(id);
    }

    pub(super) fn owns(&self, id: &ConnectionId<'_>) -> bool {
        let quiche = self.quiche.borrow();
        self.first_id.borrow().as_ref() == Some(id) || quiche.source_ids().any(|own| own == id)
    }

    pub(super) fn receive(&self, bytes: &mut [u8], info: RecvInfo) {
        let mut quiche = self.quiche.borrow_mut();
        // An error closes the connection, which everyone who waits finds.
        let _ = quiche.recv(bytes, info);
        while quiche.path_event_next().is_some() {}
        while quiche.retired_scid_next().is_some() {}
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.quiche.borrow().timeout()
    }

    pub(super) fn expire(&self) {
        let mut quiche = self.quiche.borrow_mut();
        if quiche.timeout().is_some_and(|left| left.is_zero()) {
            quiche.on_timeout();
        }
    }

    pub(super) fn next_packet(&self, buffer: &mut [u8]) -> Option<(usize, SendInfo)> {
        self.quiche.borrow_mut().send(buffer).ok()
    }

    /// Gives the peer as many connection IDs as it wants, without which it cannot migrate.
    pub(super) fn offer_connection_ids(&self) {
        let mut quiche = self.quiche.borrow_mut();
        while quiche.is_established() && !quiche.is_closed() && quiche.scids_left() > 0 {
            // A reset token is as long as an ID, and as random.
            let (Ok(id), Ok(token)) = (new_connection_id(), new_connection_id()) else {
                return;
            };
            let mut bytes = [0; ID_LENGTH];
            bytes.copy_from_slice(&token);
            if quiche
                .new_scid(&id, u128::from_be_bytes(bytes), false)
                .is_err()
            {
                return;
            }
        }
    }

    /// Sends back what came, as far as the windows allow.
    pub(super) fn echo_all(&self) {
        let mut quiche = self.quiche.borrow_mut();
        let mut echoes = self.echoes.borrow_mut();
        let mut buffer = [0; READ_BUFFER];
        for stream in quiche.readable() {
            let (pending, ended) = echoes.entry(stream).or_default();
            while let Ok((length, last)) = quiche.stream_recv(stream, &mut buffer) {
                if quiche.is_in_early_data() {
                    self.got_early_data.set(true);
                }
                pending.extend_from_slice(buffer.get(..length).unwrap_or_default());
                *ended |= last;
                if last {
                    break;
                }
            }
        }
        echoes.retain(|stream, (pending, ended)| {
            if pending.is_empty() && !*ended {
                return true;
            }
            match quiche.stream_send(*stream, pending, *ended) {
                Ok(taken) => {
                    pending.drain(..taken);
                    !(pending.is_empty() && *ended)
                }
                Err(error) => error == quiche::Error::Done,
            }
        });
        while let Ok(length) = quiche.dgram_recv(&mut buffer) {
            // One that does not fit is one that is lost.
            let _ = quiche.dgram_send(buffer.get(..length).unwrap_or_default());
        }
    }

    pub(super) fn facts(&self) -> Facts {
        let quiche = self.quiche.borrow();
        let active = quiche.path_stats().find(|path| path.active);
        let early_data = if quiche.is_server() {
            self.got_early_data.get()
        } else {
            quiche.early_data_reason() == EARLY_DATA_ACCEPTED
        };
        Facts {
            peer: active.map(|path| path.peer_addr),
            resumed: Some(quiche.is_resumed()),
            early_data: Some(early_data),
            ..Facts::default()
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.quiche.borrow().is_closed()
    }

    /// Why the connection is over, if it is.
    pub(super) fn end(&self) -> Option<String> {
        let quiche = self.quiche.borrow();
        if !quiche.is_closed() && !quiche.is_draining() {
            return None;
        }
        let (peer, own) = (quiche.peer_error(), quiche.local_error());
        Some(match (peer, own) {
            (Some(error), _) => format!(
                "closed by the peer with code {:#x}: {}",
                error.error_code,
                String::from_utf8_lossy(&error.reason)
            ),
            (None, Some(error)) => format!("quiche closed it with code {:#x}", error.error_code),
            (None, None) => "the connection is over".to_owned(),
        })
    }
}
