//! The DCUDP engine: reliable, ECN-driven UDP as state machines, without clocks, sockets or tasks.
//!
//! DCUDP is the protocol of Ye, Mhamdi and Hamdi, "Efficient UDP-Based Congestion Aware Transport for
//! Data Center Traffic" (CloudNet 2014), on UDT's packet formats. A sender begins in UDP Mode, at full
//! rate and without ACKs; CE marks bring it into Congestion Mode, and their end brings it back.
//! `docs/dcudp.md` has the formats and what was decided where the paper leaves something open.
//!
//! **DCUDP is not encrypted, and without a [`PreSharedKey`] it is not authenticated either:**
//! who sees its packets can read, change and end a connection.
//!
//! A caller owns an [`Endpoint`], which routes datagrams to [`Connection`]s and makes new ones.
//! Everything that happens goes in by a method with the time as an argument; what is to be sent comes
//! out of [`Connection::poll_transmit`], what the application should know out of
//! [`Connection::poll_event`], and [`Connection::timeout`] says when to come back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`packet`] | the bytes on the wire |
//! | `endpoint`, `cookie` | names, routing, new connections, and what keeps spoofed sources out |
//! | `connection` | the whole of it, from a datagram to events and back |
//! | `sender`, `send_buffer`, `stream_queue`, `pacer`, `mode` | data on their way out: modes, rate, losses |
//! | `receiver`, `receive_buffer`, `message_order` | data on their way in: gaps, ACKs, messages |
//! | `observer` | how the receiver sees that a congestion is over: equations 3 and 4 |
//! | [`protection`], `pre_shared_key` | sealing packets, by a key that both ends know |
//! | [`threshold`] | how large a switch's `th_max` may be |

mod channel;
mod config;
mod connection;
mod cookie;
mod endpoint;
mod error;
mod message_order;
mod mode;
mod observer;
mod pacer;
pub mod packet;
mod packet_set;
mod pre_shared_key;
pub mod protection;
mod random;
mod receive_buffer;
mod received_packet;
mod receiver;
mod rtt;
mod send_buffer;
mod sender;
mod sequence;
mod stream_queue;
pub mod threshold;

pub use config::{
    AckInterval, ConfigError, DataKind, EchoRule, Feedback, ServerConfig, TransportConfig,
};
pub use connection::{Connection, ConnectionStats, EndpointEvent, Event};
pub use endpoint::{ConnectError, ConnectionHandle, Endpoint, EndpointCounters, Route};
pub use error::{ConnectionError, ReadError, Violation, WriteError};
pub use mode::Mode;
pub use observer::{ConditionReading, CongestionObserver, QuitConfig, RttReading, Verdict};
pub use pre_shared_key::{KeyError, PreSharedKey};
pub use sequence::{MessageNumber, SequenceNumber};
pub use weir_wire::Transmit;
