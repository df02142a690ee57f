//! Endpoints of DCUDP connections: the engine of `weir_dcudp` in virtual time.
//!
//! Real datagrams pass the network, as with QUIC: packets hold the slots of their bytes in
//! [`DatagramSlab`](super::DatagramSlab). A connection has one link at each end and does not move. Every
//! workload is one byte stream in each direction.
//!
//! | file | content |
//! |---|---|
//! | `setup` | the creation of connections |
//! | `end` | one end of a connection, around the engine |
//! | `stream` | the data that the application sends and receives |

mod end;
mod setup;
mod stream;

pub(crate) use end::DcudpEnd;
pub(crate) use setup::DcudpSetup;
