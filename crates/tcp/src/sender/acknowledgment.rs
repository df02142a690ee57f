//! What acknowledgments say, and what the controller is told about them.

use weir_congestion::AckSample;
use weir_units::{ByteSize, Duration, Time};

use super::{Detection, EarlyTimer, Sender};
use crate::scoreboard::{AckSummary, SackRange};
use crate::{Counters, EcnMode};

/// An acceptable acknowledgment, in offsets of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgment<'a> {
    /// The next byte that the peer expects.
    pub(crate) upto: u64,
    /// Whether ECE is set.
    pub(crate) ece: bool,
    /// What the peer holds beyond that, within what was sent.
    pub(crate) blocks: &'a [SackRange],
    /// What arrived at the peer twice (RFC 2883).
    pub(crate) duplicate: Option<SackRange>,
    /// It has no data, and window and acknowledgment are those of the one before (RFC 5681,
    /// section 2).
    pub(crate) repeats: bool,
    /// When the segment that the time stamp echo answers was sent, as exactly as the clock ticks.
    pub(crate) echoed: Option<Time>,
}

impl Sender {
    /// An acknowledgment of new data, while [`Sender::is_plain`].
    #[inline]
    pub(crate) fn on_plain_ack(
        &mut self,
        now: Time,
        upto: u64,
        ece: bool,
        counters: &mut Counters,
    ) {
        let prior_in_flight = self.board.in_flight();
        let mut news = AckSummary::default();
        self.board.acknowledge_plain(now, upto, &mut news);
        if self.board.starts_below(upto) {
            self.board.acknowledge(now, upto, &mut news);
        }
        self.una = upto;
        self.retries = 0;
        if let Some((oldest, newest)) = news.once_sent {
            self.sample_once_sent(now, oldest, newest);
        }
        self.tell_controller(now, ece, &news, prior_in_flight, false, counters);
        self.rearm(now);
    }

    /// An acknowledgment of something between `una` and `nxt` has come.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Acknowledgment<'_>,
        tick: Duration,
        counters: &mut Counters,
    ) {
        let prior_in_flight = self.board.in_flight();
        let plain = ack.blocks.is_empty() && ack.duplicate.is_none() && self.is_plain();
        let mut news = AckSummary::default();
        if !plain {
            self.board.sack(now, ack.blocks, &mut news);
        }
        let advanced = ack.upto > self.una;
        if advanced {
            self.board.acknowledge(now, ack.upto, &mut news);
            self.una = ack.upto;
            self.retries = 0;
        }
        if news.delivered > 0 {
            self.sample_rtt(now, &news, ack, tick);
        }
        let recovering = self.is_in_fast_recovery();
        if !plain || (!advanced && ack.repeats) {
            self.recover(now, ack, &news, advanced, counters);
        }
        if news.delivered > 0 {
            self.tell_controller(now, ack.ece, &news, prior_in_flight, recovering, counters);
        }
        if self.reduction.is_some() {
            let delivered = self.delivered_for_reduction(ack, &news, advanced);
            self.reduce(delivered, advanced);
        }
        if advanced {
            self.rearm(now);
        }
    }

    /// Nothing is lost, out of order or under suspicion: an acknowledgment is just that.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.recovery.is_none()
            && self.board.sacked() == 0
            && self.board.lost() == 0
            && self.tail_probe.is_none()
            && self.duplicates == 0
            && self.early != EarlyTimer::Overdue
    }

    /// Segments that were sent once measure the round trip (Karn): the oldest for the time-out, as
    /// it includes the peer's delayed ACK (RFC 7323, section 4), the newest for the shortest round
    /// trip. Where all were sent again, the time stamp echo tells which sending is meant.
    #[inline]
    fn sample_rtt(
        &mut self,
        now: Time,
        news: &AckSummary,
        ack: &Acknowledgment<'_>,
        tick: Duration,
    ) {
        if let Some((oldest, newest)) = news.once_sent {
            self.sample_once_sent(now, oldest, newest);
        } else if let Some(sent) = ack.echoed {
            let rtt = now.since(sent);
            if rtt >= tick {
                self.rtt.on_sample(rtt);
            }
        }
    }

    #[inline]
    fn sample_once_sent(&mut self, now: Time, oldest: Time, newest: Time) {
        self.rtt.on_sample(now.since(oldest));
        self.rtt.on_min_sample(now.since(newest));
        self.board.set_shortest_rtt(self.rtt.min);
    }

    #[inline]
    fn tell_controller(
        &mut self,
        now: Time,
        echo: bool,
        news: &AckSummary,
        prior_in_flight: u64,
        recovering: bool,
        counters: &mut Counters,
    ) {
        let acked = ByteSize::from_bytes(news.delivered);
        let (mut ce_marked, mut ece) = (ByteSize::ZERO, false);
        if echo {
            counters.ece_acknowledged += acked;
            match self.ecn {
                EcnMode::Off => {}
                EcnMode::Classic => {
                    ece = true;
                    self.note_reduction();
                }
                EcnMode::Dctcp => ce_marked = acked,
            }
        }
        let min_rtt = self.rtt.min;
        let delivery = self.board.delivery_rate().and_then(|rate| {
            // Without a round-trip time there is no minimum that a sample has to span.
            rate.sample(if min_rtt == Duration::MAX {
                Duration::ZERO
            } else {
                min_rtt
            })
        });
        let round_ended = news.newest_sent >= self.round_started;
        if round_ended {
            self.round_started = now;
        }
        let unlimited = self
            .limited_at
            .is_none_or(|limited| limited < news.newest_sent);
        self.controller.on_ack(&AckSample {
            now,
            acked,
            ce_marked,
            ece,
            rtt: news.once_sent.map(|(_, newest)| now.since(newest)),
            smoothed_rtt: self.rtt.smoothed,
            min_rtt,
            prior_in_flight: ByteSize::from_bytes(prior_in_flight),
            in_flight: ByteSize::from_bytes(self.board.in_flight()),
            newest_sent: Self::told(news.newest_sent),
            delivery,
            // In fast recovery the window must not grow (RFC 5681 section 3.2, RFC 9937), unless
            // the controller governs recovery by its rate. After a time-out slow start repairs
            // what was lost (RFC 5681 section 3.1).
            app_limited: unlimited || (recovering && !self.pacer.of_controller),
            round_ended,
        });
        self.follow_controller();
    }

    /// An ECE echo beyond the last reduction: the peer is told of a new one by CWR on the next new
    /// segment (RFC 3168, section 6.1.2).
    fn note_reduction(&mut self) {
        if self.una > self.reduced_up_to || self.reduced_up_to == 0 {
            self.reduced_up_to = self.nxt;
            self.cwr_due = true;
        }
    }

    /// New data has been acknowledged: the timers start again (RFC 6298, section 5.3; RFC 8985,
    /// section 7.2).
    #[inline]
    pub(super) fn rearm(&mut self, now: Time) {
        if self.board.records.is_empty() {
            self.rto_at = Time::MAX;
            self.early_at = Time::MAX;
            self.early = EarlyTimer::Probe;
            return;
        }
        self.rto_at = self.rtt.deadline(now);
        if self.detection == Detection::Rack && self.early == EarlyTimer::Probe {
            self.schedule_tail_probe(now);
        }
    }
}
