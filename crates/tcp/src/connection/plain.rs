//! The fast paths: what a connection does for almost every segment while nothing unusual goes on.
//!
//! One flag says so. The general paths recompute it when they end, so that a fast path tests it instead of
//! everything that it stands for. A fast path handles a segment wholly, exactly as the general paths would,
//! or leaves it to them before it has changed anything.

use weir_units::Time;
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, Segment};

use super::clock::TimestampClock;
use super::sending_half::SendingHalf;
use super::{Connection, State};
use crate::sender::{PlainNext, Sender};

/// What a connection has to send after a segment that it has taken in on its fast paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickNext {
    /// Nothing now.
    Nothing,
    /// What [`Connection::quick_acknowledgment`] returns after data, and [`Connection::quick_data`] after an
    /// acknowledgment. It has to be called before anything else.
    Segment,
    /// Only [`Connection::next_segment`] tells.
    Unknown,
}

/// The fast paths do not apply.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotPlain;

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

    /// Processes a segment with data as [`Connection::receive`] does, if that takes only a fast path, and
    /// returns what to send then; nothing unless `may_send`. Otherwise it changes nothing, and returns `None`.
    #[inline(always)]
    pub fn take_data(
        &mut self,
        now: Time,
        segment: &Segment,
        ecn: Ecn,
        may_send: bool,
    ) -> Option<QuickNext> {
        if !self.is_plain
            || segment.payload == 0
            || !self.is_next_in_order(segment)
            || !self.receive_plain_data(now, segment, ecn)
        {
            return None;
        }
        self.counters.segments_received += 1;
        let has_sent_data = self.sender.built().is_none_or(Sender::has_sent_data);
        // While an ACK for earlier data is due, so is the next one.
        Some(match self.receiver.acks.is_due() {
            _ if !may_send => QuickNext::Nothing,
            _ if !has_sent_data => QuickNext::Unknown,
            false => QuickNext::Nothing,
            true if self.receiver.echo.has_prior() => QuickNext::Unknown,
            true => QuickNext::Segment,
        })
    }

    /// Builds the acknowledgment that is due after [`Connection::take_data`], and returns it with the ECN
    /// codepoint of its packet.
    #[inline(always)]
    pub fn quick_acknowledgment(&mut self, now: Time) -> (Segment, Ecn) {
        self.plain_acknowledgment(now)
    }

    /// Processes a segment without data as [`Connection::receive`] does, if that takes only a fast path, and
    /// returns what to send then; nothing unless `may_send`. Otherwise it changes nothing, and returns `None`.
    #[inline(always)]
    pub fn take_acknowledgment(
        &mut self,
        now: Time,
        segment: &Segment,
        may_send: bool,
    ) -> Option<QuickNext> {
        if !self.is_plain || segment.payload > 0 || !self.is_next_in_order(segment) {
            return None;
        }
        let SendingHalf::Built(sender) = &mut self.sender else {
            return None;
        };
        let una = sender.una;
        let ahead = segment
            .acknowledgment
            .distance_from(self.local + una as u32);
        if ahead <= 0 {
            return None;
        }
        let upto = una + u64::from(ahead.unsigned_abs());
        let segments = sender.scoreboard.whole_segments(upto)?;
        let next = self.receiver.next;
        let is_answered = self.last_acknowledged == next;
        if !TimestampClock::take_in_order(&mut self.clock, now, segment.timestamps, is_answered) {
            return None;
        }
        self.counters.segments_received += 1;
        self.window_from = next;
        let ece = segment.flags.contains(Flags::ECE);
        self.counters.ece_received += u64::from(ece);
        let window = u64::from(segment.window) << self.peer_scale;
        sender.set_edge(upto + window, window);
        sender.acknowledge_whole(now, upto, &segments, ece);
        if !may_send {
            return Some(QuickNext::Nothing);
        }
        if self.receiver.acks.is_due() {
            return Some(QuickNext::Unknown);
        }
        if sender.has_sent_data() {
            return Some(QuickNext::Nothing);
        }
        Some(match sender.next_plain(now, false) {
            PlainNext::Nothing => QuickNext::Nothing,
            PlainNext::Full => QuickNext::Segment,
            PlainNext::General => QuickNext::Unknown,
        })
    }

    /// Builds the segment of new data that follows [`Connection::take_acknowledgment`], and returns it with the
    /// ECN codepoint of its packet.
    ///
    /// # Panics
    /// If nothing has been written.
    #[inline(always)]
    pub fn quick_data(&mut self, now: Time) -> (Segment, Ecn) {
        let sender = match &mut self.sender {
            SendingHalf::Built(sender) => sender,
            SendingHalf::Unused(_) => unreachable!("there is something to send"),
        };
        let mut outgoing = sender.send_full(now, true);
        outgoing.push = outgoing.push || sender.pushes_every_segment();
        self.pushed_segment(now, outgoing)
    }

    /// Returns whether [`Connection::next_segment`] has to be called again after the segment of
    /// [`Connection::quick_data`]. `false` is certain.
    #[inline(always)]
    pub fn may_send_more(&mut self, now: Time) -> bool {
        let sender = self.sender.built_mut();
        sender.is_some_and(|sender| !sender.has_sent_data() && !sender.waits_plainly(now))
    }

    /// Returns what [`Connection::next_segment`] returns on the fast paths; `Err` if only that tells.
    #[inline(always)]
    pub(super) fn next_plain(&mut self, now: Time) -> Result<Option<(Segment, Ecn)>, NotPlain> {
        let is_ack_due = self.receiver.acks.is_due();
        // While one for earlier data is due, so is the next one.
        if is_ack_due && self.receiver.echo.has_prior() {
            return Err(NotPlain);
        }
        if let Some(sender) = self.sender.built_mut()
            && !sender.has_sent_data()
        {
            match sender.next_plain(now, is_ack_due) {
                PlainNext::Nothing => {}
                PlainNext::Full => {
                    let outgoing = sender.send_full(now, false);
                    return Ok(Some(self.data_segment(now, outgoing)));
                }
                PlainNext::General => return Err(NotPlain),
            }
        }
        Ok(is_ack_due.then(|| self.plain_acknowledgment(now)))
    }

    /// Returns what [`Connection::timeout`] returns after a segment taken in on the fast paths; never is
    /// [`Time::MAX`].
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
    #[inline(always)]
    fn count_echo(&mut self, segment: &Segment) -> bool {
        let ece = segment.flags.contains(Flags::ECE);
        self.counters.ece_received += u64::from(ece);
        ece
    }
}
