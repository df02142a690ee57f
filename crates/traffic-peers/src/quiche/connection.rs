//! Connection functions shared by clients and servers.

use std::net::SocketAddr;

use quiche::{Config, Connection, ConnectionId};
use weir_traffic::calls::Error;
use weir_traffic::calls::identity::SERVER_NAME;

/// The length of our connection IDs in bytes.
pub(super) const ID_LENGTH: usize = 16;

/// Returns a connection ID of [`ID_LENGTH`] random bytes.
pub(super) fn new_connection_id() -> Result<ConnectionId<'static>, Error> {
    let mut bytes = vec![0; ID_LENGTH];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|error| Error::transport("making a connection ID", error))?;
    Ok(ConnectionId::from_vec(bytes))
}

/// Opens a client's connection, and resumes `session` if there is one.
///
/// # Errors
/// Returns quiche's error, for an invalid session too.
pub fn connect(
    config: &mut Config,
    local: SocketAddr,
    server: SocketAddr,
    session: Option<&[u8]>,
) -> Result<Connection, Error> {
    let id = new_connection_id()?;
    let mut connection = quiche::connect(Some(SERVER_NAME), &id, local, server, config)
        .map_err(|error| Error::transport("connecting", error))?;
    if let Some(session) = session {
        connection
            .set_session(session)
            .map_err(|error| Error::transport("resuming", error))?;
    }
    Ok(connection)
}

/// Runs the connection's timers that have expired. Returns whether any had.
pub fn expire(connection: &mut Connection) -> bool {
    let is_due = connection.timeout().is_some_and(|left| left.is_zero());
    if is_due {
        connection.on_timeout();
    }
    is_due
}

/// Issues as many more connection IDs as the peer accepts. Calls `given` with each.
pub fn offer_connection_ids(
    connection: &mut Connection,
    mut given: impl FnMut(ConnectionId<'static>),
) {
    while connection.is_established() && !connection.is_closed() && connection.scids_left() > 0 {
        // A reset token has the same length as an ID and is random too.
        let (Ok(id), Ok(token)) = (new_connection_id(), new_connection_id()) else {
            return;
        };
        let token = token
            .iter()
            .fold(0, |token, byte| token << 8 | u128::from(*byte));
        if connection.new_scid(&id, token, false).is_err() {
            return;
        }
        given(id);
    }
}

/// Returns whether the server accepted the early data of this client's connection.
#[must_use]
pub fn took_early_data(connection: &Connection) -> bool {
    /// BoringSSL's `ssl_early_data_accepted`.
    const ACCEPTED: u32 = 2;
    connection.early_data_reason() == ACCEPTED
}

/// Returns whether a connection is closed or draining.
pub(super) fn is_over(connection: &Connection) -> bool {
    connection.is_closed() || connection.is_draining()
}

/// Returns why a connection is closed or draining; `None` while it is open.
#[must_use]
pub fn why_over(connection: &Connection) -> Option<String> {
    if !is_over(connection) {
        return None;
    }
    Some(match (connection.peer_error(), connection.local_error()) {
        (Some(error), _) => format!(
            "closed by the peer with code {:#x}: {}",
            error.error_code,
            String::from_utf8_lossy(&error.reason)
        ),
        (None, Some(error)) => format!("quiche closed it with code {:#x}", error.error_code),
        (None, None) => "the connection is over".to_owned(),
    })
}
