//! ECN on behalf of a sender that does not know of it (RFC 3168, section 6.1).

use weir_fabric::{Direction, Handshake, Packet};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment};

/// The answer to it says ECE alone.
const OFFER: Flags = Flags::ECE_AND_CWR;

/// What has been negotiated in place of one end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiation {
    /// Which end's data is to be marked, if only one's is.
    sender: Option<Direction>,
    /// Whether the other end has offered ECN, or has accepted it.
    accepted: bool,
    /// Whether the sender's end takes part itself.
    native: bool,
    /// Whether the receiver's data has met a mark that it has not heard of yet.
    echo: bool,
}

impl Negotiation {
    /// `sender` is the way of the data that is to be marked, where it is one of the two.
    pub(crate) fn new(sender: Option<Direction>) -> Self {
        Self {
            sender,
            ..Self::default()
        }
    }

    /// A SYN on its way: the receiver is told that the sender speaks ECN, and the sender that the
    /// receiver does not.
    pub(crate) fn on_syn<P: Packet>(
        &mut self,
        packet: &mut P,
        segment: &Segment,
        way: Direction,
        handshake: &Handshake,
    ) {
        let offers = segment.flags.contains(OFFER);
        let is_answer = segment.flags.contains(Flags::ACK);
        let accepts = segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
        let Some(sender) = self.sender else {
            // Both ends' data or none: the ends negotiate for themselves.
            self.native |= is_answer && accepts;
            return;
        };
        match (way == sender, is_answer) {
            // A SYN that is sent again without an offer has met somebody who drops those with one.
            (true, false) => {
                let first = handshake
                    .offer(way)
                    .is_none_or(|offer| offer.flags == segment.flags);
                if first {
                    packet.set_flags(segment.flags | OFFER);
                }
            }
            (false, false) => {
                self.accepted = offers;
                packet.set_flags(segment.flags.without(OFFER));
            }
            (true, true) => {
                if self.accepted {
                    packet.set_flags(segment.flags.without(OFFER) | Flags::ECE);
                }
            }
            (false, true) => {
                self.accepted = accepts;
                packet.set_flags(segment.flags.without(OFFER));
            }
        }
    }

    /// Whether data that goes `way` may be marked, and echoes are to be expected.
    pub(crate) fn is_active(&self, way: Direction) -> bool {
        self.native || (self.accepted && self.sender == Some(way))
    }

    /// Data of the receiver's passes, which believes that the other end speaks ECN.
    pub(crate) fn on_data_back(&mut self, ecn: Ecn, flags: Flags) {
        if flags.contains(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= ecn == Ecn::Ce;
    }

    /// Whether a segment that goes `way` has to echo a mark for its sender.
    pub(crate) fn echoes(&self, way: Direction) -> bool {
        self.echo && self.sender == Some(way)
    }
}
