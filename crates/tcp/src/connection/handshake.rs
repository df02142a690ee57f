//! The three-way handshake (RFC 9293, section 3.5) and its negotiation.

use weir_units::{Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, Segment, SynOptions};

use super::{Connection, Ending, State};
use crate::receiver::Receiver;
use crate::{Config, EcnMode, TIMESTAMPS_LENGTH};

/// The MSS of a peer that does not announce one (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// A handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    /// The SYN of this end has not been acknowledged.
    pub(super) pending: bool,
    /// A SYN or SYN-ACK is due.
    pub(super) due: bool,
    /// Its send time.
    sent_at: Option<Time>,
    /// Number of its timeouts.
    timeouts: u32,
    /// The options of the SYN-ACK that answers the peer's SYN.
    answer: Option<NegotiatedOptions>,
}

/// The options that the peer's SYN permits.
#[derive(Clone, Copy, Debug)]
struct NegotiatedOptions {
    window_scale: bool,
    sack: bool,
    ecn: bool,
}

/// The options of a SYN.
pub(super) fn offer(config: &Config) -> SynOptions {
    SynOptions {
        // Validated with the configuration.
        maximum_segment_size: u16::try_from(config.mss.bytes()).unwrap_or(u16::MAX),
        window_scale: config.window_scale,
        sack_permitted: config.sack,
    }
}

impl Handshake {
    /// The state of a connection without a handshake.
    pub(super) const NONE: Self = Self {
        pending: false,
        due: false,
        sent_at: None,
        timeouts: 0,
        answer: None,
    };
}

impl Connection {
    /// Applies the options that both ends support, once the peer's SYN has arrived.
    pub(super) fn settle_options(&mut self, peer: &SynOptions, peer_has_timestamps: bool) {
        if !peer_has_timestamps {
            self.clock = None;
        }
        let overhead = if self.clock.is_some() {
            TIMESTAMPS_LENGTH
        } else {
            0
        };
        let room = |mss: u64| mss.saturating_sub(overhead).max(1);
        let own = self.config.mss.bytes();
        let mss = room(own.min(u64::from(peer.maximum_segment_size)));
        // A segment is never longer than 64 KiB.
        self.mss = u32::try_from(mss).unwrap_or(u32::MAX);
        self.sack = self.config.sack && peer.sack_permitted;
        if let Some(sender) = self.sender.built_mut() {
            sender.set_mss(mss);
            sender.set_sack(self.sack, self.config.loss_detection);
        }
        let scale = match (self.config.window_scale, peer.window_scale) {
            // RFC 7323, section 2.3: larger shifts mean 14.
            (Some(own), Some(theirs)) => (own, theirs.min(14)),
            _ => (0, 0),
        };
        self.peer_scale = scale.1;
        self.receiver.settle(room(own), scale.0, &self.config);
    }

    pub(super) fn settle_ecn(&mut self, both: bool) {
        if !both {
            self.ecn = EcnMode::Off;
            if let Some(sender) = self.sender.built_mut() {
                sender.disable_ecn();
            }
            self.receiver.disable_ecn();
        }
    }

    /// Handles a segment in LISTEN (RFC 9293, section 3.10.7.2).
    pub(super) fn receive_in_listen(&mut self, now: Time, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.rare.reset_due = Some(Box::new(reset_for(segment)));
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        let options = self.take_syn(now, segment);
        // RFC 3168, section 6.1.1.
        let ecn =
            segment.flags.contains(Flags::ECE | Flags::CWR) && self.config.ecn != EcnMode::Off;
        self.settle_ecn(ecn);
        self.rare.handshake.answer = Some(NegotiatedOptions {
            window_scale: options.window_scale.is_some(),
            sack: self.sack,
            ecn,
        });
        self.rare.handshake.pending = true;
        self.rare.handshake.due = true;
        self.state = State::SynReceived;
        self.restart_keep_alive(now);
    }

    /// Applies a SYN.
    fn take_syn(&mut self, now: Time, segment: &Segment) -> SynOptions {
        self.remote = segment.sequence + 1;
        let options = match segment.options {
            Options::Syn(options) => options,
            _ => SynOptions {
                maximum_segment_size: DEFAULT_MSS,
                window_scale: None,
                sack_permitted: false,
            },
        };
        self.settle_options(&options, segment.timestamps.is_some());
        if let (Some(clock), Some(timestamps)) = (&mut self.clock, segment.timestamps) {
            clock.take(now, timestamps.value);
        }
        // The window of a SYN is never shifted (RFC 7323, section 2.2).
        let window = u64::from(segment.window);
        self.sender.on_window(window, window);
        options
    }

    /// Handles a segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn receive_in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let flags = segment.flags;
        if flags.contains(Flags::ACK) && segment.acknowledgment != self.local {
            if !flags.contains(Flags::RST) {
                self.rare.reset_due = Some(Box::new(reset_for(segment)));
            }
            return;
        }
        if flags.contains(Flags::RST) {
            if flags.contains(Flags::ACK) {
                self.end(Ending::Refused);
            }
            return;
        }
        if !flags.contains(Flags::SYN | Flags::ACK) {
            return;
        }
        self.take_syn(now, segment);
        let echoes = flags.intersects(Flags::ECE) && !flags.intersects(Flags::CWR);
        self.settle_ecn(echoes && self.config.ecn != EcnMode::Off);
        self.establish(now);
        self.receiver.acks.ack_now();
    }

    /// Enters ESTABLISHED: the SYN of this end has been acknowledged.
    pub(super) fn establish(&mut self, now: Time) {
        self.rare.handshake.pending = false;
        self.rare.state_at = Time::MAX;
        // Karn: only a SYN that was sent once yields a sample (RFC 6298, section 3).
        let sent = self
            .rare
            .handshake
            .sent_at
            .filter(|_| self.rare.handshake.timeouts == 0);
        let rtt = sent.map(|sent| now.since(sent));
        self.sender.on_handshake(rtt.filter(|rtt| !rtt.is_zero()));
        self.rare.handshake.due = false;
        self.state = if self.sender.is_finished() {
            State::FinWait1
        } else {
            State::Established
        };
        self.restart_keep_alive(now);
    }

    /// Returns whether the SYN of this end is still unacknowledged.
    pub(super) fn awaits_acknowledgment_of_syn(&self) -> bool {
        self.rare.handshake.pending
    }

    /// Returns the SYN or SYN-ACK, if one is due.
    pub(super) fn next_syn(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if !self.rare.handshake.due {
            return None;
        }
        self.rare.handshake.due = false;
        self.rare.handshake.sent_at = Some(now);
        self.rare.state_at = now + self.syn_timeout();
        self.counters.other_segments_sent += 1;
        if self.rare.handshake.timeouts > 0 {
            self.counters.rare().retransmitted_segments += 1;
        }
        let mut options = offer(&self.config);
        let mut segment = Segment {
            sequence: self.local + u32::MAX,
            window: Receiver::initial_window(&self.config),
            flags: Flags::SYN,
            timestamps: self.clock.as_mut().map(|clock| clock.stamp(now)),
            ..Segment::default()
        };
        let wants_ecn = match self.rare.handshake.answer {
            None => {
                let wanted = self.config.ecn != EcnMode::Off;
                if wanted {
                    segment.flags |= Flags::ECE | Flags::CWR;
                }
                wanted
            }
            Some(answer) => {
                segment.flags |= Flags::ACK;
                segment.acknowledgment = self.remote;
                if answer.ecn {
                    segment.flags |= Flags::ECE;
                }
                options.window_scale = options.window_scale.filter(|_| answer.window_scale);
                options.sack_permitted = answer.sack;
                answer.ecn
            }
        };
        segment.options = Options::Syn(options);
        let capable = wants_ecn && self.config.ecn == EcnMode::Dctcp;
        Some((segment, if capable { Ecn::Ect0 } else { Ecn::NotEct }))
    }

    fn syn_timeout(&self) -> Duration {
        let factor = 1u64
            .checked_shl(self.rare.handshake.timeouts)
            .unwrap_or(u64::MAX);
        (self.config.initial_rto * factor).min(self.config.max_rto)
    }

    /// Handles a timeout of the SYN.
    pub(super) fn on_handshake_time(&mut self) {
        if self.rare.handshake.timeouts >= self.config.max_syn_retries {
            self.end(Ending::TimedOut);
            return;
        }
        self.rare.handshake.timeouts += 1;
        self.counters.rare().timeouts += 1;
        self.rare.handshake.due = true;
        // The timer is set again when the SYN leaves.
        self.rare.state_at = Time::MAX;
    }

    /// Repeats the SYN-ACK for a repeated SYN.
    pub(super) fn repeat_answer(&mut self) {
        self.rare.handshake.due = self.rare.handshake.answer.is_some();
    }
}

/// Returns the reset for a segment without a connection (RFC 9293, section 3.10.7.1).
pub(super) fn reset_for(segment: &Segment) -> Segment {
    if segment.flags.contains(Flags::ACK) {
        Segment {
            sequence: segment.acknowledgment,
            flags: Flags::RST,
            ..Segment::default()
        }
    } else {
        Segment {
            acknowledgment: segment.end(),
            flags: Flags::RST | Flags::ACK,
            ..Segment::default()
        }
    }
}
