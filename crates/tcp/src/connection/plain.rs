//! The fast paths: what a connection does for almost every segment while nothing unusual goes on.
//!
//! One flag says so. The general paths recompute it when they end, so that a fast path tests it instead of
//! everything that it stands for. A fast path handles a segment wholly, exactly as the general paths would,
//! or leaves it to them before it has changed anything.

use weir_units::Time;
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, Segment};

use super::{Connection, State};
use crate::sender::{PlainNext, Sender};

/// The next segment of a connection on its fast paths.
#[derive(Clone, Copy, Debug)]
pub enum QuickNext {
    /// There is none to send now.
    Nothing,
    /// This one, in a packet with this ECN codepoint.
    Segment(Segment, Ecn),
    /// Only [`Connection::next_segment`] tells.
    Unknown,
}

impl Connection {
    /// Makes this end handle every event on its general paths. For tests, which compare the two.
    #[doc(hidden)]
    #[must_use]
    pub fn without_fast_paths(mut self) -> Self {
        self.has_fast_paths = false;
        self.refresh();
        self
    }

    /// Calls `fetch` with the addresses beyond the connection itself that the next acknowledgment will read:
    /// for callers with many connections, which have the processor fetch them before.
    #[inline]
    pub fn heap_lines(&self, fetch: impl Fn(*const u8)) {
        if let Some(sender) = self.sender.built() {
            let first = std::ptr::from_ref(sender).cast::<u8>();
            let lines = size_of::<Sender>().div_ceil(64);
            (0..lines).for_each(|line| fetch(first.wrapping_add(line * 64)));
        }
    }

    /// Calls `fetch` with the addresses beyond the connection itself that its counters and its window are read
    /// from.
    #[inline]
    pub fn counter_lines(&self, fetch: impl Fn(*const u8)) {
        fetch(self.counters.rare_address());
        if let Some(sender) = self.sender.built() {
            fetch(sender.window_address());
        }
    }

    /// Recomputes whether the fast paths apply. Every general path ends with it.
    pub(super) fn refresh(&mut self) {
        let is_plain = self.has_fast_paths
            && self.state == State::Established
            && self.rare.keep_alive_at == Time::MAX
            && self.rare.state_at == Time::MAX
            && !self.rare.keep_alive_due
            && self.sender.has_fast_paths()
            && self.receiver.has_fast_paths();
        let sender = self.sender.built_mut();
        self.is_plain = is_plain && sender.is_none_or(|sender| sender.scoreboard.drop_records());
        if self.is_plain && !self.rare.is_initial() && self.rare.is_over() {
            self.rare.reset();
        }
    }

    /// Processes a segment with data, or one without, as [`Connection::receive`] does, if that takes only a
    /// fast path. Otherwise it changes nothing, and returns false.
    #[inline(always)]
    pub fn receive_quickly<const DATA: bool>(
        &mut self,
        now: Time,
        segment: &Segment,
        ecn: Ecn,
    ) -> bool {
        let is_done = self.is_plain
            && (segment.payload > 0) == DATA
            && self.is_next_in_order(segment)
            && if DATA {
                self.receive_plain_data(now, segment, ecn)
            } else {
                self.receive_plain_acknowledgment(now, segment)
            };
        self.counters.segments_received += u64::from(is_done);
        is_done
    }

    /// Returns the next segment to send now as [`Connection::next_segment`] does, right after a segment with data,
    /// or one without, that was [received quickly](Connection::receive_quickly).
    #[inline(always)]
    pub fn next_quickly<const DATA: bool>(&mut self, now: Time) -> QuickNext {
        debug_assert!(self.is_plain, "the fast paths apply");
        let is_ack_due = self.receiver.acks.is_due();
        let has_sent_data = self.sender.built().is_none_or(Sender::has_sent_data);
        if DATA {
            // While an ACK for earlier data is due, so is the next one.
            return match is_ack_due {
                _ if !has_sent_data => QuickNext::Unknown,
                false => QuickNext::Nothing,
                true if self.receiver.echo.has_prior() => QuickNext::Unknown,
                true => {
                    let (segment, ecn) = self.plain_acknowledgment(now);
                    QuickNext::Segment(segment, ecn)
                }
            };
        }
        if is_ack_due {
            return QuickNext::Unknown;
        }
        if !has_sent_data && let Some(sender) = self.sender.built_mut() {
            return match sender.next_plain(now, false, true) {
                PlainNext::Nothing => QuickNext::Nothing,
                PlainNext::Segment(outgoing) => {
                    let (segment, ecn) = self.data_segment(now, outgoing);
                    QuickNext::Segment(segment, ecn)
                }
                PlainNext::General => QuickNext::Unknown,
            };
        }
        QuickNext::Nothing
    }

    /// Returns whether [`Connection::next_segment`] has to be called again after a segment of
    /// [`Connection::next_quickly`]. `false` is certain.
    #[inline(always)]
    pub fn may_send_more(&mut self, now: Time) -> bool {
        let sender = self.sender.built_mut();
        sender.is_some_and(|sender| !sender.has_sent_data() && !sender.waits_plainly(now))
    }

    /// Returns what [`Connection::next_segment`] returns on the fast paths.
    #[inline(always)]
    pub(super) fn next_plain(&mut self, now: Time) -> QuickNext {
        let is_ack_due = self.receiver.acks.is_due();
        // While one for earlier data is due, so is the next one.
        if is_ack_due && self.receiver.echo.has_prior() {
            return QuickNext::Unknown;
        }
        if let Some(sender) = self.sender.built_mut()
            && !sender.has_sent_data()
        {
            match sender.next_plain(now, is_ack_due, false) {
                PlainNext::Nothing => {}
                PlainNext::Segment(outgoing) => {
                    let (segment, ecn) = self.data_segment(now, outgoing);
                    return QuickNext::Segment(segment, ecn);
                }
                PlainNext::General => return QuickNext::Unknown,
            }
        }
        if !is_ack_due {
            return QuickNext::Nothing;
        }
        let (segment, ecn) = self.plain_acknowledgment(now);
        QuickNext::Segment(segment, ecn)
    }

    /// Returns the next time to call [`Connection::handle_timeout`], as [`Connection::timeout`] does; never is
    /// [`Time::MAX`]. After [`Connection::next_quickly`].
    #[inline(always)]
    pub fn quick_timeout(&self) -> Time {
        // There is no keep-alive timer, and no other timer of the connection's.
        let of_sender = self.sender.plain_timeout();
        of_sender.min(self.receiver.acks.timeout())
    }

    /// Whether a segment has nothing unusual, and follows the data that has arrived.
    #[inline(always)]
    fn is_next_in_order(&self, segment: &Segment) -> bool {
        let rest = segment.flags.without(Flags::PSH | Flags::ECE | Flags::CWR);
        rest == Flags::ACK
            && segment.sequence == self.remote + self.receiver.next as u32
            && matches!(segment.options, Options::None)
    }

    /// Processes the next data in order on the fast path. Returns whether it did.
    #[inline(always)]
    fn receive_plain_data(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> bool {
        if segment.acknowledgment != self.sequence(self.sender.una())
            || !self.receiver.has_room_for(segment.payload)
            || !self.take_predicted_timestamps(now, segment)
        {
            return false;
        }
        self.follow_same_window(segment);
        self.count_echo(segment);
        let cwr = segment.flags.contains(Flags::CWR);
        let data = self.in_order_data(now, segment);
        self.receiver
            .on_expected(now, &data, cwr, ecn, &mut self.counters);
        true
    }

    /// Processes an acknowledgment of whole segments that were sent once on the fast path. Returns whether it
    /// did.
    #[inline(always)]
    fn receive_plain_acknowledgment(&mut self, now: Time, segment: &Segment) -> bool {
        let una = self.sender.una();
        let ahead = segment.acknowledgment.distance_from(self.sequence(una));
        if ahead <= 0 {
            return false;
        }
        let upto = una + u64::from(ahead.unsigned_abs());
        let Some(segments) = self
            .sender
            .built()
            .and_then(|sender| sender.scoreboard.whole_segments(upto))
        else {
            return false;
        };
        if !self.take_predicted_timestamps(now, segment) {
            return false;
        }
        let window = u64::from(segment.window) << self.peer_scale;
        self.window_from = self.receiver.next;
        let ece = self.count_echo(segment);
        if let Some(sender) = self.sender.built_mut() {
            sender.set_edge(upto + window, window);
            sender.acknowledge_whole(now, upto, &segments, ece);
        }
        true
    }

    /// Updates the window as [`Connection::update_window`] does, on the next data in order, which acknowledges
    /// nothing.
    #[inline(always)]
    fn follow_same_window(&mut self, segment: &Segment) {
        let window = u64::from(segment.window) << self.peer_scale;
        let una = self.sender.una();
        let is_same = una + window == self.sender.edge();
        if is_same && self.receiver.next > self.window_from {
            self.window_from = self.receiver.next;
        } else {
            self.update_window(segment.window, 0, una);
        }
    }

    /// Counts an ECN echo. Returns whether the segment has one.
    #[inline]
    fn count_echo(&mut self, segment: &Segment) -> bool {
        let ece = segment.flags.contains(Flags::ECE);
        self.counters.ece_received += u64::from(ece);
        ece
    }
}
