//! Endpoints of DCUDP connections: the engine of `weir_dcudp`, in virtual time.
//!
//! Real datagrams pass the network, as with QUIC: packets hold the places of their bytes in
//! [`DatagramSlab`](super::DatagramSlab). A connection has one link at each end and does not move. All
//! workloads are one stream of bytes in each direction.
//!
//! | file | what it holds |
//! |---|---|
//! | `setup` | how connections are made |
//! | `end` | one end of a connection, around the engine |
//! | `stream` | what the application sends and receives |

mod end;
mod setup;
mod stream;

pub(crate) use end::DcudpEnd;
pub(crate) use setup::DcudpSetup;
