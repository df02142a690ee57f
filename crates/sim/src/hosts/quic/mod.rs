//! Endpoints of QUIC connections: the DCQUIC engine of `weir_quic`, in virtual time.
//!
//! Real datagrams pass the network: packets hold the places of their bytes in [`Datagrams`]. TLS is the
//! engine's seeded stand-in, whose handshake has the messages and about the sizes of TLS 1.3 and whose
//! packets have its tags: real keys would cost time and be different in every run.
//!
//! | file | what it holds |
//! |---|---|
//! | `transport` | from a scenario's options to the engine's configuration |
//! | `setup` | how connections are made |
//! | `end` | one end of a connection, around the engine |
//! | `pairs` | which links of two hosts there are for connections |
//! | `ways` | a host's addresses and links, as a connection uses them |
//! | `messages` | what the application sends and receives, on streams |
//! | `datagrams` | the bytes on their way |

mod datagrams;
mod end;
mod messages;
mod pairs;
mod setup;
mod transport;
mod ways;

use weir_units::Time;

pub(crate) use datagrams::Datagrams;
pub(crate) use end::QuicEnd;
pub(crate) use pairs::Surroundings;
pub(crate) use setup::QuicSetup;
pub use transport::quic_transport;

use super::Address;
use crate::network::Network;
use crate::packet::{Contents, Packet, Packets, QuicDatagram};

impl Datagrams {
    /// Hands an end the datagram of a packet.
    pub(super) fn deliver(
        &mut self,
        now: Time,
        packet: &Packet,
        datagram: &QuicDatagram,
        end: &mut QuicEnd,
    ) {
        let bytes = self.receive(datagram.place);
        end.receive(now, packet.locations(), packet.ecn, bytes);
    }

    /// Sends the next datagram of an end, if there is one to be sent now.
    pub(super) fn send(
        &mut self,
        now: Time,
        end: &mut QuicEnd,
        address: &Address,
        packets: &mut Packets,
        network: &mut Network,
    ) -> bool {
        if self.is_full() {
            self.keep(network.packets().map(Packet::place));
        }
        let (place, buffer) = self.write();
        let Some(departure) = end.next_datagram(now, buffer) else {
            self.give_back(place);
            return false;
        };
        let datagram = QuicDatagram {
            place,
            // The engine bounds it by what UDP can carry.
            payload: buffer.len() as u16,
            editions: [departure.from.edition, departure.to.edition],
        };
        let address = Address {
            source: departure.from.number,
            destination: departure.to.number,
            ..*address
        };
        let packet = packets.fill(Contents::Quic(datagram), departure.ecn, &address);
        network.send(now, departure.port, packet);
        true
    }
}

impl Packet {
    /// Where its bytes are, if it has any.
    fn place(&self) -> Option<u32> {
        match self.contents {
            Contents::Quic(datagram) => Some(datagram.place),
            Contents::Segment(_) | Contents::Datagram(_) => None,
        }
    }
}
