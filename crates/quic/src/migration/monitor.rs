//! The migration monitor: it takes events and returns decisions.

use weir_units::{Duration, Time};

use super::choice::{PathRequirement, PathView, choose};
use super::config::{Detector, MigrationConfig, MigrationConfigError};
use super::decision::{Cause, Decision, Interruption};
use super::interruption::SilenceWatch;
use super::paper::{PaperDetector, total_bytes};
use super::return_watch::ReturnWatch;
use super::size_class::SizeClassDetector;
use super::table::StreamTable;
use crate::PathId;
use crate::{Direction, Side, StreamId};

/// Monitors the path that a client's connection uses, and decides when to leave it.
///
/// Times must not go backwards. All methods take constant time, except for a scan of the stream
/// table (at most 512 streams) while round trips are slow or a decision is made. Without a standby
/// path ([`MigrationMonitor::set_standby`]) the monitor stores and does nothing.
#[derive(Debug)]
pub struct MigrationMonitor {
    config: MigrationConfig,
    current: PathId,
    /// Whether there is a path to move to.
    standby: bool,
    streams: StreamTable,
    detector: DetectorState,
    silence: SilenceWatch,
    return_watch: ReturnWatch,
    /// When the connection last moved, or was last asked to.
    last_move: Option<Time>,
    decision_wanted: bool,
    /// An alarm was raised within the hysteresis interval.
    deferred: bool,
}

/// The state of the configured detector.
#[derive(Debug)]
enum DetectorState {
    Paper(PaperDetector),
    SizeClass(Box<SizeClassDetector>),
}

/// The connection's action after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wakeup {
    /// Nothing.
    Nothing,
    /// Send a PING on the path in use: a response is due and no packets arrive.
    SendPing,
}

impl MigrationMonitor {
    /// Creates a monitor of a connection that uses the path `current`. It has no standby path yet.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn new(
        config: MigrationConfig,
        now: Time,
        current: PathId,
    ) -> Result<Self, MigrationConfigError> {
        config.validate()?;
        let detector = match config.detector {
            Detector::Paper(parameters) => DetectorState::Paper(PaperDetector::new(parameters)),
            Detector::SizeClass(parameters) => DetectorState::SizeClass(Box::new(
                SizeClassDetector::new(parameters, config.min_increase),
            )),
        };
        Ok(Self {
            config,
            current,
            standby: false,
            streams: StreamTable::default(),
            detector,
            silence: SilenceWatch::new(now, config.probe_timeouts, None),
            return_watch: ReturnWatch::new(now, config.return_after, config.detector.alpha()),
            last_move: None,
            decision_wanted: false,
            deferred: false,
        })
    }

    /// Returns the path in use.
    pub fn current(&self) -> PathId {
        self.current
    }

    /// Returns its configuration.
    pub fn config(&self) -> &MigrationConfig {
        &self.config
    }

    /// Whether the monitor uses events: migration is on and there is a standby path. If not, a
    /// connection may skip all other events.
    pub fn is_armed(&self) -> bool {
        self.config.proactive && self.standby
    }

    /// Sets whether there is a path to move to, validated or in validation. Averages survive a time
    /// without one; streams in progress do not.
    pub fn set_standby(&mut self, now: Time, standby: bool) {
        if self.standby == standby {
            return;
        }
        self.standby = standby;
        self.streams.clear();
        let pto = Some(self.silence.pto()).filter(|pto| !pto.is_zero());
        self.silence = SilenceWatch::new(now, self.config.probe_timeouts, pto);
        self.return_watch.restart(now);
        self.decision_wanted = false;
        self.deferred = false;
    }

    /// Reports a stream opened on the path in use. Only the client's bidirectional streams are
    /// tracked: only on these a response can be due.
    pub fn on_stream_opened(&mut self, now: Time, id: StreamId) {
        let is_request =
            id.initiator() == Side::Client && id.direction() == Direction::Bidirectional;
        if self.is_armed() && is_request {
            self.streams.open(id, self.current, now);
        }
    }

    /// Reports that the packet with the end of a request was sent: a response is due from now on.
    pub fn on_request_sent(&mut self, now: Time, id: StreamId) {
        if self.is_armed() {
            self.streams.request_sent(id, now);
            self.silence.on_progress(now);
        }
    }

    /// Reports a STREAM frame of a response, with or without data. Call it before
    /// [`MigrationMonitor::on_fin`] if the frame ends the stream.
    pub fn on_response(&mut self, now: Time, id: StreamId) {
        if !self.is_armed() {
            return;
        }
        self.silence.on_progress(now);
        if let Some(stream) = self.streams.get_mut(id) {
            stream.first_byte.get_or_insert(now);
        }
    }

    /// Reports the STREAM frame that ends a response, with `length` bytes at `offset` (equation 1).
    pub fn on_fin(&mut self, now: Time, id: StreamId, offset: u64, length: u64) {
        if !self.is_armed() {
            return;
        }
        let current = self.current;
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        if stream.ended.is_some() {
            return;
        }
        stream.ended = Some(now);
        stream.total_bytes = total_bytes(offset, length);
        if let DetectorState::Paper(detector) = &mut self.detector
            && stream.path == current
        {
            detector.on_ended(stream);
            if detector.alarm().is_some() {
                self.raise(now);
            }
        }
    }

    /// Reports that all bytes of a response have arrived, including its end.
    pub fn on_stream_finished(&mut self, now: Time, id: StreamId) {
        if !self.is_armed() {
            return;
        }
        let Some(stream) = self.streams.remove(id) else {
            return;
        };
        if let DetectorState::SizeClass(detector) = &mut self.detector
            && stream.path == self.current
            && stream.ended.is_some()
        {
            detector.on_finished(now, &stream);
            if detector.alarm(now, self.current, &self.streams).is_some() {
                self.raise(now);
            }
        }
    }

    /// Reports that no response is expected on a stream any more: either side reset or stopped it.
    pub fn on_stream_abandoned(&mut self, id: StreamId) {
        self.streams.remove(id);
    }

    /// Reports an RTT sample of `path`, less the whole ACK delay that the peer reports. `pto` is
    /// the resulting probe timeout without backoff (RFC 9002, section 6.2.1, `max_ack_delay`
    /// included).
    pub fn on_rtt_sample(&mut self, now: Time, path: PathId, rtt: Duration, pto: Duration) {
        if !self.is_armed() || path != self.current {
            return;
        }
        self.silence.on_rtt_sample(rtt, pto);
        if let DetectorState::SizeClass(detector) = &mut self.detector {
            detector.on_rtt_sample(now, rtt);
            if detector.alarm(now, path, &self.streams).is_some() {
                self.raise(now);
            }
        }
    }

    /// Reports an ack-eliciting packet sent on `path`.
    pub fn on_packet_sent(&mut self, now: Time, path: PathId) {
        if path == self.current && self.is_armed() {
            self.silence.on_sent(now);
        }
    }

    /// Reports an authentic packet received on `path`. Once per receive batch is enough, before the
    /// events of its content.
    pub fn on_packet_received(&mut self, now: Time, path: PathId) {
        if path == self.current && self.is_armed() {
            self.silence.on_packet_received(now);
        }
    }

    /// Reports an expired probe timeout on `path`; `pto` is its length without backoff.
    pub fn on_probe_timeout(&mut self, now: Time, path: PathId, pto: Duration) {
        if path != self.current || !self.is_armed() {
            return;
        }
        self.silence.on_probe_timeout(now, pto);
        if self.silence.interrupted {
            self.raise(now);
        }
    }

    /// Reports a validated path. An alarm that had no path to move to is decided again.
    pub fn on_path_validated(&mut self, now: Time, path: PathId) {
        if self.is_armed() && path != self.current && self.alarm(now).is_some() {
            self.raise(now);
        }
    }

    /// Reports that a standby path did not answer or was closed.
    pub fn on_path_failed(&mut self, path: PathId) {
        self.return_watch.on_path_failed(path);
    }

    /// Reports a move to `to`, whatever its cause; `pto` is that path's probe timeout, if its RTT
    /// is known. All averages restart, so that the new path is not judged by the old one's. Streams
    /// in progress are still due, but do not count for the new path's speed.
    pub fn on_moved(&mut self, now: Time, to: PathId, pto: Option<Duration>) {
        self.current = to;
        self.last_move = Some(now);
        self.decision_wanted = false;
        self.deferred = false;
        self.silence = SilenceWatch::new(now, self.config.probe_timeouts, pto);
        self.return_watch.restart(now);
        match &mut self.detector {
            DetectorState::Paper(detector) => detector.restart(),
            DetectorState::SizeClass(detector) => detector.restart(),
        }
    }

    /// Returns when to call [`MigrationMonitor::handle_timeout`]; `None` if no timer is set.
    pub fn timeout(&self) -> Option<Time> {
        if !self.is_armed() {
            return None;
        }
        let deferred = self.hysteresis_ends_at().filter(|_| self.deferred);
        [
            self.next_keepalive(),
            self.silence.deadline(),
            self.return_watch.next_check,
            deferred,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns when a PING will be requested, if no event comes first.
    pub fn next_keepalive(&self) -> Option<Time> {
        if self.is_armed() {
            self.silence.keepalive_at(self.streams.due > 0)
        } else {
            None
        }
    }

    /// Handles [`MigrationMonitor::timeout`]. Does nothing before that time. Report received
    /// packets first: they may end the silence.
    pub fn handle_timeout(&mut self, now: Time) -> Wakeup {
        if !self.is_armed() {
            return Wakeup::Nothing;
        }
        let was_raised = self.silence.interrupted;
        self.silence.handle_timeout(now);
        if self.silence.interrupted && !was_raised {
            self.raise(now);
        }
        if self.deferred && !self.in_hysteresis(now) {
            self.deferred = false;
            self.decision_wanted |= self.alarm(now).is_some();
        }
        self.decision_wanted |= self.return_watch.take_check(now);
        if self.next_keepalive().is_some_and(|at| at <= now) {
            self.silence.on_keepalive(now);
            return Wakeup::SendPing;
        }
        Wakeup::Nothing
    }

    /// Whether [`MigrationMonitor::decide`] is to be called now.
    pub fn wants_decision(&self) -> bool {
        self.decision_wanted
    }

    /// Decides whether to move, and where to. `paths` are the connection's paths, including the one
    /// in use. The connection confirms with [`MigrationMonitor::on_moved`]. If it does not, the
    /// decision is requested again after the hysteresis interval, if the cause persists.
    pub fn decide(&mut self, now: Time, paths: &[PathView]) -> Option<Decision> {
        self.decision_wanted = false;
        if !self.is_armed() {
            return None;
        }
        let back = self.return_watch.check_paths(now, self.current, paths);
        if self.in_hysteresis(now) {
            self.deferred |= self.alarm(now).is_some();
            return None;
        }
        let away = self.alarm(now).and_then(|cause| {
            let to = choose(self.current, paths, self.requirement(&cause))?;
            Some((to, cause))
        });
        let (to, cause) = away.or(back.map(|(to, figures)| (to, Cause::Return(figures))))?;
        self.last_move = Some(now);
        self.deferred = true;
        let from = paths.iter().find(|path| path.id == self.current);
        Some(Decision {
            at: now,
            from: self.current,
            to: to.id,
            cause,
            from_rtt: from.and_then(|path| path.rtt),
            to_rtt: to.rtt,
            from_loss: from.map_or(0.0, PathView::sane_loss),
            to_loss: to.sane_loss(),
        })
    }

    /// Whether the path in use should be left and the hysteresis interval allows it, whether or not
    /// a better path is known: the data about the others may be old.
    pub fn wants_better_path(&self, now: Time) -> bool {
        !self.in_hysteresis(now) && self.alarm(now).is_some()
    }

    /// Returns the alarm of the path in use, if any.
    fn alarm(&self, now: Time) -> Option<Cause> {
        if self.silence.interrupted {
            return Some(Cause::Interruption(self.interruption(now)));
        }
        match &self.detector {
            DetectorState::Paper(detector) => detector.alarm().map(Cause::Equation4),
            DetectorState::SizeClass(detector) => detector.alarm(now, self.current, &self.streams),
        }
    }

    fn interruption(&self, now: Time) -> Interruption {
        let waits = self.streams.iter().filter_map(|stream| {
            let sent = stream.request_sent?;
            Some(now.since(sent))
        });
        Interruption {
            probe_timeouts: self.silence.probe_timeouts,
            pto: self.silence.pto(),
            silence: self.silence.silence(now),
            unanswered: self.silence.unanswered(now),
            streams_due: self.streams.due as u32,
            longest_wait: waits.max(),
            usual_wait: match &self.detector {
                DetectorState::Paper(_) => None,
                DetectorState::SizeClass(detector) => detector.usual_wait(),
            },
        }
    }

    /// Returns the requirement for a new path. The paper has none: "other available source IP".
    fn requirement(&self, cause: &Cause) -> PathRequirement {
        let alpha = self.config.detector.alpha();
        match cause {
            Cause::Equation4(_) | Cause::Interruption(_) | Cause::Return(_) => {
                PathRequirement::Working
            }
            Cause::RoundTrips(figures) => PathRequirement::Better {
                alpha,
                rtt: Some(figures.short_term),
            },
            Cause::Streams(_) => PathRequirement::Better { alpha, rtt: None },
        }
    }

    fn raise(&mut self, now: Time) {
        if self.in_hysteresis(now) {
            self.deferred = true
        } else {
            self.decision_wanted = true
        }
    }

    /// Returns when the connection may move again.
    fn hysteresis_ends_at(&self) -> Option<Time> {
        self.last_move.map(|moved| moved + self.config.hysteresis)
    }

    fn in_hysteresis(&self, now: Time) -> bool {
        self.hysteresis_ends_at()
            .is_some_and(|settled| now < settled)
    }

    /// Returns the stream capacity and the number of stored completion times.
    #[cfg(test)]
    pub(super) fn memory(&self) -> (usize, usize) {
        let times = match &self.detector {
            DetectorState::Paper(detector) => detector.times.len(),
            DetectorState::SizeClass(_) => 0,
        };
        (self.streams.capacity(), times)
    }
}
