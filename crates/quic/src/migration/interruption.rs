//! Detects interruptions: no packets arrive on a path although some should.
//!
//! **The deadline.** Probe timeouts are measured as time, not as events: RFC 9002 doubles each, so
//! the third event comes after seven. The timer starts with the first ack-eliciting packet sent
//! after the last received packet, and any packet received on the path stops it. It runs for
//! `probe_timeouts` probe timeouts without backoff, less one RTT, so that after the move the first
//! byte over the other path arrives in time. The connection's own probe is sent and stays
//! unanswered within that time, so one lost packet is never enough (with three or more probe
//! timeouts: RTT + PTO + `max_ack_delay` is less than three probe timeouts less one RTT).
//!
//! **Keep-alive.** A client that only receives has nothing outstanding. While a response is due and
//! all sent packets are answered, it sends a PING after one PTO of silence, counted from one RTT
//! before the last received packet. That silence then counts as the first probe timeout. A server
//! that computes for long answers every PING. After eight probe timeouts without a byte of any
//! response, the allowed silence grows to an eighth of the wait and no longer counts.
//!
//! **Late timers.** If a deadline is noticed more than a PTO late, this host was suspended, not the
//! path: packets that arrived meanwhile are still unread. Once per silence the deadline is extended
//! by one PTO.

use weir_units::{Duration, Time};

/// The silence before a keep-alive, as a fraction of the time without progress of responses.
const KEEPALIVE_SHARE: u64 = 8;

/// The state of silence on the path.
#[derive(Debug)]
pub(super) struct SilenceWatch {
    /// The probe timeouts that make an interruption.
    limit: u32,
    /// The probe timeout without backoff, once known.
    pto: Option<Duration>,
    /// The smoothed RTT; zero before it is known.
    rtt: Duration,
    last_received: Time,
    /// When a request or response bytes last passed over the path.
    progress: Time,
    unanswered: Option<UnansweredProbe>,
    /// Probe timeouts since the last received packet.
    pub(super) probe_timeouts: u32,
    /// Whether the path is interrupted.
    pub(super) interrupted: bool,
    /// Whether the deadline was extended in this silence.
    deadline_extended: bool,
}

/// A sent packet without an answer.
#[derive(Clone, Copy, Debug)]
struct UnansweredProbe {
    since: Time,
    deadline: Time,
}

impl SilenceWatch {
    /// Starts the watch of a path that is in use from now on.
    pub(super) fn new(now: Time, limit: u32, pto: Option<Duration>) -> Self {
        Self {
            limit,
            pto,
            rtt: Duration::ZERO,
            last_received: now,
            progress: now,
            unanswered: None,
            probe_timeouts: 0,
            interrupted: false,
            deadline_extended: false,
        }
    }

    pub(super) fn on_rtt_sample(&mut self, rtt: Duration, pto: Duration) {
        self.pto = Some(pto);
        self.rtt = if self.rtt.is_zero() {
            rtt
        } else {
            (self.rtt * 7 + rtt) / 8
        };
    }

    /// Records a sent ack-eliciting packet.
    pub(super) fn on_sent(&mut self, now: Time) {
        if self.unanswered.is_none()
            && let Some(pto) = self.pto
        {
            self.start(now, pto);
        }
    }

    fn start(&mut self, since: Time, pto: Duration) {
        let span = pto * u64::from(self.limit);
        let deadline = since + (span - self.rtt.min(pto));
        self.unanswered = Some(UnansweredProbe { since, deadline });
    }

    /// Records a received packet.
    pub(super) fn on_packet_received(&mut self, now: Time) {
        self.last_received = now;
        self.unanswered = None;
        self.probe_timeouts = 0;
        self.interrupted = false;
        self.deadline_extended = false;
    }

    /// Records a sent request or a received byte of a response.
    pub(super) fn on_progress(&mut self, now: Time) {
        self.progress = now;
    }

    pub(super) fn on_probe_timeout(&mut self, now: Time, pto: Duration) {
        self.pto = Some(pto);
        self.probe_timeouts = self.probe_timeouts.saturating_add(1);
        if self.unanswered.is_none() {
            self.start(now - pto, pto);
        }
        self.interrupted |= self.probe_timeouts >= self.limit;
    }

    /// Returns when a PING is to be sent, if no event comes first.
    pub(super) fn keepalive_at(&self, response_due: bool) -> Option<Time> {
        if !response_due || self.unanswered.is_some() || self.interrupted {
            return None;
        }
        let silence = self.pto?.max(self.allowed_silence());
        Some(self.last_received.max(self.progress) + (silence - self.rtt.min(silence / 2)))
    }

    fn allowed_silence(&self) -> Duration {
        self.last_received.since(self.progress) / KEEPALIVE_SHARE
    }

    /// Records a PING sent because of [`SilenceWatch::keepalive_at`].
    pub(super) fn on_keepalive(&mut self, now: Time) {
        let Some(pto) = self.pto else {
            return;
        };
        let credit = if self.allowed_silence() <= pto {
            pto - self.rtt.min(pto / 2)
        } else {
            Duration::ZERO
        };
        self.start(now - credit, pto);
    }

    /// Returns when the path counts as interrupted, if no event comes first.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.unanswered
            .filter(|_| !self.interrupted)
            .map(|unanswered| unanswered.deadline)
    }

    /// Checks the deadline at `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let (Some(unanswered), Some(pto)) = (&mut self.unanswered, self.pto) else {
            return;
        };
        if now < unanswered.deadline {
            return;
        }
        if now > unanswered.deadline + pto && !self.deadline_extended {
            self.deadline_extended = true;
            unanswered.deadline = now + pto;
            return;
        }
        self.interrupted = true;
    }

    /// Returns the probe timeout without backoff; zero before it is known.
    pub(super) fn pto(&self) -> Duration {
        self.pto.unwrap_or_default()
    }

    /// Returns the time since the last received packet.
    pub(super) fn silence(&self, now: Time) -> Duration {
        now.since(self.last_received)
    }

    /// Returns the time since the first unanswered packet was sent.
    pub(super) fn unanswered(&self, now: Time) -> Duration {
        self.unanswered
            .map_or(Duration::ZERO, |unanswered| now.since(unanswered.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_micros(650);
    const RTT: Duration = Duration::from_micros(100);

    fn at(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// A packet was received at 10 ms, and none is unanswered.
    fn watch() -> SilenceWatch {
        let mut watch = SilenceWatch::new(Time::ZERO, 3, None);
        watch.on_rtt_sample(RTT, PTO);
        watch.on_progress(at(10_000));
        watch.on_packet_received(at(10_000));
        watch
    }

    #[test]
    fn the_deadline_is_three_probe_timeouts_less_a_round_trip() {
        let mut watch = watch();
        watch.on_sent(at(20_000));
        watch.on_sent(at(20_500));
        assert_eq!(watch.deadline(), Some(at(20_000 + 1950 - 100)));
        watch.on_probe_timeout(at(20_650), PTO);
        watch.handle_timeout(at(21_849));
        assert!(!watch.interrupted);
        watch.handle_timeout(at(21_850));
        assert!(watch.interrupted);
        assert_eq!((watch.deadline(), watch.probe_timeouts), (None, 1));
        watch.on_packet_received(at(21_860));
        assert!(!watch.interrupted);
    }

    #[test]
    fn a_receive_only_client_sends_a_ping() {
        let mut watch = watch();
        assert_eq!(watch.keepalive_at(false), None);
        let ping = at(10_000 + 650 - 100);
        assert_eq!(watch.keepalive_at(true), Some(ping));
        watch.on_keepalive(ping);
        watch.on_sent(ping);
        assert_eq!(watch.keepalive_at(true), None);
        // Three probe timeouts after the earliest possible failure of the path, less half an RTT.
        assert_eq!(watch.deadline(), Some(at(10_000 + 1950 - 100)));
    }

    #[test]
    fn pings_become_rarer_while_the_server_is_thinking() {
        let mut watch = watch();
        let mut pings = 0;
        while let Some(ping) = watch.keepalive_at(true)
            && ping < at(10_010_000)
        {
            watch.on_keepalive(ping);
            watch.on_packet_received(ping + RTT);
            pings += 1;
        }
        assert!((60..100).contains(&pings), "{pings} in ten seconds");
    }

    #[test]
    fn enough_probe_timeouts_signal_an_interruption() {
        let mut watch = SilenceWatch::new(Time::ZERO, 3, None);
        for count in 1..=3 {
            assert!(!watch.interrupted);
            watch.on_probe_timeout(at(count * 10), PTO);
        }
        assert!(watch.interrupted);
    }

    #[test]
    fn a_late_timer_grants_one_more_probe_timeout() {
        let mut watch = watch();
        watch.on_sent(at(20_000));
        watch.handle_timeout(at(90_000));
        assert!(!watch.interrupted);
        assert_eq!(watch.deadline(), Some(at(90_650)));
        watch.handle_timeout(at(99_000));
        assert!(watch.interrupted, "once per silence");
    }
}
