//! ECN on behalf of a sender without ECN (RFC 3168, section 6.1).

use weir_fabric::{Direction, Handshake, Packet};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment};

/// An ECN-setup SYN. Its SYN-ACK sets ECE alone.
const OFFER: Flags = Flags::ECE_AND_CWR;

/// What has been negotiated in place of one end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiation {
    /// The direction whose data is to be marked, if it is only one.
    sender: Option<Direction>,
    /// Whether the other end has offered or accepted ECN.
    accepted: bool,
    /// Whether the sender's end negotiates ECN itself.
    native: bool,
    /// Whether the receiver's data has met a CE mark that has not been echoed yet.
    echo: bool,
}

impl Negotiation {
    /// `sender` is the direction of the data to be marked, if it is only one.
    pub(crate) fn new(sender: Option<Direction>) -> Self {
        Self {
            sender,
            ..Self::default()
        }
    }

    /// Rewrites a SYN: the receiver sees a sender with ECN, and the sender a receiver without.
    pub(crate) fn on_syn<P: Packet>(
        &mut self,
        packet: &mut P,
        segment: &Segment,
        direction: Direction,
        handshake: &Handshake,
    ) {
        let offers = segment.flags.contains(OFFER);
        let is_answer = segment.flags.contains(Flags::ACK);
        let accepts = segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
        let Some(sender) = self.sender else {
            // Both directions or none: the ends negotiate for themselves.
            self.native |= is_answer && accepts;
            return;
        };
        match (direction == sender, is_answer) {
            // A SYN retransmitted without an offer may have met a middlebox that drops SYNs with one.
            (true, false) => {
                let first = handshake
                    .offer(direction)
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

    /// Whether data in this direction may be marked, and echoes are to be expected.
    pub(crate) fn is_active(&self, direction: Direction) -> bool {
        self.native || (self.accepted && self.sender == Some(direction))
    }

    /// Notes data of the receiver, which takes its peer to be ECN-capable.
    pub(crate) fn on_data_back(&mut self, ecn: Ecn, flags: Flags) {
        if flags.contains(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= ecn == Ecn::Ce;
    }

    /// Whether a segment in this direction has to echo a CE mark for its sender.
    pub(crate) fn echoes(&self, direction: Direction) -> bool {
        self.echo && self.sender == Some(direction)
    }
}
