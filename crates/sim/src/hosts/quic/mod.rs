//! Endpoints of QUIC connections: the DCQUIC engine of `weir_quic` in virtual time.
//!
//! Real datagrams pass the network: packets hold the slots of their bytes in
//! [`DatagramSlab`](super::DatagramSlab). TLS is the engine's seeded stand-in. Its handshake has the
//! messages and about the sizes of TLS 1.3, and its packets have authentication tags. Real keys would cost
//! time and differ in every run.
//!
//! | file | content |
//! |---|---|
//! | `setup` | the creation of connections |
//! | `end` | one end of a connection, around the engine |
//! | `pair_endpoints` | the links between two hosts for connections |
//! | `host_paths` | a host's addresses and links, as a connection uses them |
//! | `messages` | the application's messages on streams |
//! | `path_secrets` | what hosts know of each other |

mod end;
mod host_paths;
mod messages;
mod pair_endpoints;
mod path_secrets;
mod setup;

pub(crate) use end::QuicEnd;
pub(crate) use pair_endpoints::HostEnvironment;
pub(crate) use path_secrets::PathSecrets;
pub(crate) use setup::QuicSetup;
