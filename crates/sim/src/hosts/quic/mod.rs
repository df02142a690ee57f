//! Endpoints of QUIC connections: the DCQUIC engine of `weir_quic`, in virtual time.
//!
//! Real datagrams pass the network: packets hold the places of their bytes in [`DatagramSlab`](super::DatagramSlab). TLS is the
//! engine's seeded stand-in, whose handshake has the messages and about the sizes of TLS 1.3 and whose
//! packets have its tags: real keys would cost time and be different in every run.
//!
//! | file | what it holds |
//! |---|---|
//! | `setup` | how connections are made |
//! | `end` | one end of a connection, around the engine |
//! | `pairs` | which links of two hosts there are for connections |
//! | `ways` | a host's addresses and links, as a connection uses them |
//! | `messages` | what the application sends and receives, on streams |

mod end;
mod host_paths;
mod messages;
mod pair_endpoints;
mod setup;

pub(crate) use end::QuicEnd;
pub(crate) use pair_endpoints::HostEnvironment;
pub(crate) use setup::QuicSetup;
