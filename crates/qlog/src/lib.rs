//! qlog output of DCQUIC connections: an observer's events as JSON text records (RFC 7464) in the
//! schema of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, for QUIC's
//! tools.
//!
//! A [`Recorder`] is the observer of one connection. It writes records into memory and passes them
//! in batches to a [`Sink`], which writes them to a file ([`file_name`]) or elsewhere. [`IoSink`]
//! makes a sink of any [`std::io::Write`]. This crate reads no clock and opens no file: the caller
//! gives the recorder the wall-clock time of [`Time::ZERO`](weir_units::Time::ZERO).
//!
//! | file | contents |
//! |---|---|
//! | `recorder` | from events to records |
//! | `sink` | the destination of records |
//! | `record` | a file's header, and the envelope of each event |
//! | `packet`, `frames` | packets and their frames |
//! | `connection` | endpoints, transport parameters, paths, the end |
//! | `recovery` | metrics of loss recovery and congestion control |
//!
//! Weir's own events are in the namespace `weir`: `weir:migration_decided` has the cause and the
//! metrics of a proactive migration. Weir's own fields in events of the draft begin with `weir_`.

mod connection;
mod frames;
mod hex;
mod packet;
mod record;
mod recorder;
mod recovery;
mod sink;

pub use record::{QUIC_EVENTS, WEIR_EVENTS};
pub use recorder::Recorder;
pub use sink::{Batch, IoSink, Sink};

use weir_quic::Side;
use weir_quic::observe::Subject;

/// Returns the name of a connection's file: the client's first destination connection ID and the
/// side, as in `8394c8f03e515708_client.sqlog`.
pub fn file_name(subject: &Subject) -> String {
    format!(
        "{}_{}.sqlog",
        subject.original_destination,
        side(subject.side)
    )
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}
