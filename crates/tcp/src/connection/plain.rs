//! The fast paths: what a connection does for almost every segment while nothing unusual goes on.
//!
//! One flag says so. The general paths recompute it when they end, so that a fast path tests it instead of
//! everything that it stands for. A fast path handles a segment wholly, exactly as the general paths would,
//! or leaves it to them before it has changed anything.

use weir_units::Time;
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, Segment};

use super::{Connection, State};
use crate::sender::Sender;

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

    /// Processes a segment on a fast path: the next data in order, or an acknowledgment of whole segments
    /// that were sent once. Returns whether it did.
    #[inline]
    pub(super) fn receive_plain(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> bool {
        let rest = segment.flags.without(Flags::PSH | Flags::ECE | Flags::CWR);
        if rest != Flags::ACK
            || segment.sequence != self.remote + self.receiver.next as u32
            || !matches!(segment.options, Options::None)
        {
            return false;
        }
        let una = self.sender.una();
        let ahead = segment.acknowledgment.distance_from(self.sequence(una));
        if segment.payload > 0 {
            if ahead != 0
                || !self.receiver.has_room_for(segment.payload)
                || !self.take_predicted_timestamps(now, segment)
            {
                return false;
            }
            self.follow_same_window(segment);
            self.count_echo(segment);
            let cwr = segment.flags.contains(Flags::CWR);
            let data = self.in_order_data(segment);
            self.receiver
                .on_expected(now, &data, cwr, ecn, &mut self.counters);
            return true;
        }
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
