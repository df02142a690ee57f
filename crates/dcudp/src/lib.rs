//! The DCUDP engine: reliable, ECN-driven UDP as state machines, without clocks, sockets or tasks.
//!
//! DCUDP is the protocol of Ye, Mhamdi and Hamdi, "Efficient UDP-Based Congestion Aware Transport
//! for Data Center Traffic" (CloudNet 2014), on UDT's packet formats. A sender starts in UDP Mode,
//! at full rate and without ACKs. CE marks switch it to Congestion Mode, and their end switches it
//! back. `docs/dcudp.md` describes the formats and the decisions where the paper leaves something
//! open.
//!
//! **DCUDP is not encrypted, and without a [`PreSharedKey`] it is not authenticated either:**
//! anyone on the path can read, change and end a connection.
//!
//! A caller owns an [`Endpoint`], which routes datagrams to [`Connection`]s and creates new ones.
//! Every input is a method call with the time as an argument. Outgoing datagrams come from
//! [`Connection::poll_transmit`], events for the application from [`Connection::poll_event`], and
//! [`Connection::timeout`] returns the time of the next call.
//!
//! | module | content |
//! |---|---|
//! | [`packet`] | the wire format |
//! | `endpoint`, `cookie` | socket ids, routing, new connections, and protection against spoofed sources |
//! | `connection` | the connection state machine, from datagrams to events |
//! | `sender`, `send_buffer`, `stream_queue`, `pacer`, `mode` | outgoing data: modes, rate, losses |
//! | `flight` | the packets that are still under way, where ACKs come all the time |
//! | `receiver`, `receive_buffer`, `message_order` | incoming data: gaps, ACKs, messages |
//! | `jitter` | the interarrival jitter of data packets |
//! | `loss_persistence` | losses that count as congestion |
//! | `observer` | the receiver's detection of the end of congestion: equations 3 and 4 |
//! | [`protection`], `pre_shared_key` | packet protection with a key shared by both ends |
//! | [`threshold`] | the upper bound of a switch's `th_max` |

mod channel;
mod config;
mod connection;
mod cookie;
mod endpoint;
mod error;
mod flight;
mod jitter;
mod loss_persistence;
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
pub use observer::{ConditionRule, CongestionObserver, QuitConfig, RttSource, Verdict};
pub use pre_shared_key::{KeyError, PreSharedKey};
pub use sequence::{MessageNumber, SequenceNumber};
pub use weir_wire::{BatchContents, Transmit};
