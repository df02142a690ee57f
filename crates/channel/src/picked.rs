//! A call's server and connection.

use std::net::SocketAddr;

use crate::server::Outstanding;

/// The connection that a call was given. The call counts as under way at its server until this is
/// dropped.
///
/// Say what became of the call, so that a server which does not answer is avoided:
/// [`Picked::on_answer`] or [`Picked::on_failure`], or neither where it says nothing about the
/// server, as when a draining server refuses a call.
#[derive(Debug)]
#[must_use = "a call counts as under way until this is dropped"]
pub struct Picked<L> {
    link: L,
    call: Outstanding,
}

impl<L> Picked<L> {
    pub(crate) const fn new(link: L, call: Outstanding) -> Self {
        Self { link, call }
    }

    /// Returns the connection.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.call.server().address
    }

    /// The server answered.
    pub fn on_answer(&self) {
        self.call.server().on_answer();
    }

    /// The server did not answer.
    pub fn on_failure(&self) {
        self.call.server().on_failure();
    }
}
