//! DCQUIC connections as qlog, the format that QUIC's tools read: what an observer is told, as JSON
//! text records (RFC 7464) in the schema of draft-ietf-quic-qlog-main-schema and
//! draft-ietf-quic-qlog-quic-events.
//!
//! A [`Recorder`] is the observer of one connection. It writes records into memory and gives them in
//! batches to a [`Sink`], which brings them to a file ([`file_name`]) or wherever. Any
//! [`std::io::Write`] is a sink by [`IoSink`]. Nothing here reads a clock or opens a file: the
//! recorder is told what the wall clock showed at [`Time::ZERO`](weir_units::Time::ZERO).
//!
//! | file | what it tells |
//! |---|---|
//! | `recorder` | from events to records, record by record |
//! | `sink` | where records go |
//! | `record` | what stands at the beginning of a file and around each event |
//! | `packet`, `frames` | packets and what is in them |
//! | `connection` | endpoints, transport parameters, paths, the end |
//! | `recovery` | figures of loss recovery and congestion control |
//!
//! Events of our own are in the namespace `weir`: `weir:migration_decided` has the cause and the
//! figures of a proactive move. Fields of our own in events of the draft begin with `weir_`.

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

/// The name of a connection's file: the client's first destination connection ID and the side, as in
/// `8394c8f03e515708_client.sqlog`.
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
