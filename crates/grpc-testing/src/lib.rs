//! gRPC's interoperability tests for tonic: the test service, and its client's cases over any channel.
//!
//! | module | contents |
//! |---|---|
//! | `proto` | the messages, and tonic's clients and servers, generated from `proto/grpc/testing` |
//! | `service` | the service as its handlers see it |
//! | `server` | the service as it is served: echoes metadata, and knows what was compressed |
//! | `cases` | the cases by name |
//! | `channel` | what they need of a channel |
//! | `first_message` | whether a message was compressed, which tonic does not tell |

pub mod cases;
mod channel;
mod failure;
mod first_message;
pub mod proto;
mod server;
mod service;

pub use channel::TestChannel;
pub use failure::Failure;
pub use server::TestServer;
pub use service::Running;
