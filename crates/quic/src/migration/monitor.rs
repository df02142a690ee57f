//! The monitor: events in, decisions out.

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

/// Watches the path that a client's connection uses, and decides when to leave it.
///
/// Times that are handed in must not go backwards. All methods take constant time, but for a look
/// at the stream table (512 streams at most) while round trips are slow or a decision is made.
/// Without a standby path ([`MigrationMonitor::set_standby`]) nothing is kept and nothing is done.
#[derive(Debug)]
pub struct MigrationMonitor {
    config: MigrationConfig,
    current: PathId,
    /// Whether there is a path to move to.
    standby: bool,
    streams: StreamTable,
    detector: State,
    silence: SilenceWatch,
    return_watch: ReturnWatch,
    /// When the connection last moved, or was last told to.
    last_move: Option<Time>,
    wanted: bool,
    /// An alarm came within the hysteresis interval.
    deferred: bool,
}

/// The state of the detector that was chosen.
#[derive(Debug)]
enum State {
    Paper(PaperDetector),
    SizeClass(Box<SizeClassDetector>),
}

/// What the connection has to do when a timeout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wakeup {
    /// Nothing.
    Nothing,
    /// Send a PING on the path in use: a response is due and nothing is heard.
    SendPing,
}

impl MigrationMonitor {
    /// A monitor of a connection that uses the path `current`. It has no standby path yet.
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
            Detector::Paper(parameters) => State::Paper(PaperDetector::new(parameters)),
            Detector::SizeClass(parameters) => State::SizeClass(Box::new(SizeClassDetector::new(
                parameters,
                config.min_increase,
            ))),
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
            wanted: false,
            deferred: false,
        })
    }

    /// The path in use.
    pub fn current(&self) -> PathId {
        self.current
    }

    /// What it was configured with.
    pub fn config(&self) -> &MigrationConfig {
        &self.config
    }

    /// Whether events matter: migration is on and there is a standby path. Where not, a connection
    /// may skip all other events.
    pub fn is_armed(&self) -> bool {
        self.config.proactive && self.standby
    }

    /// Whether there is a path to move to, validated or about to be. Averages outlive a time
    /// without; streams in progress do not.
    pub fn set_standby(&mut self, now: Time, standby: bool) {
        if self.standby == standby {
            return;
        }
        self.standby = standby;
        self.streams.clear();
        let pto = Some(self.silence.pto()).filter(|pto| !pto.is_zero());
        self.silence = SilenceWatch::new(now, self.config.probe_timeouts, pto);
        self.return_watch.restart(now);
        self.wanted = false;
        self.deferred = false;
    }

    /// A stream was opened on the path in use. Only bidirectional streams of the client's are
    /// watched: on these a response can be due.
    pub fn on_stream_opened(&mut self, now: Time, id: StreamId) {
        let is_request =
            id.initiator() == Side::Client && id.direction() == Direction::Bidirectional;
        if self.is_armed() && is_request {
            self.streams.open(id, self.current, now);
        }
    }

    /// The packet with the end of a request was sent: a response is due from now on.
    pub fn on_request_sent(&mut self, now: Time, id: StreamId) {
        if self.is_armed() {
            self.streams.request_sent(id, now);
            self.silence.on_progress(now);
        }
    }

    /// A STREAM frame of a response came, with data or without. To be told before
    /// [`MigrationMonitor::on_fin`] where the frame ends the stream.
    pub fn on_response(&mut self, now: Time, id: StreamId) {
        if !self.is_armed() {
            return;
        }
        self.silence.on_progress(now);
        if let Some(stream) = self.streams.get_mut(id) {
            stream.first_byte.get_or_insert(now);
        }
    }

    /// The STREAM frame that ends a response came, with `length` bytes at `offset` (equation 1).
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
        if let State::Paper(detector) = &mut self.detector
            && stream.path == current
        {
            detector.on_ended(stream);
            if detector.alarm().is_some() {
                self.raise(now);
            }
        }
    }

    /// All bytes of a response are here, its end included.
    pub fn on_stream_finished(&mut self, now: Time, id: StreamId) {
        if !self.is_armed() {
            return;
        }
        let Some(stream) = self.streams.remove(id) else {
            return;
        };
        if let State::SizeClass(detector) = &mut self.detector
            && stream.path == self.current
            && stream.ended.is_some()
        {
            detector.on_finished(now, &stream);
            if detector.alarm(now, self.current, &self.streams).is_some() {
                self.raise(now);
            }
        }
    }

    /// No response is expected on a stream any more: it was reset or stopped, by either side.
    pub fn on_stream_abandoned(&mut self, id: StreamId) {
        self.streams.remove(id);
    }

    /// A round trip on `path` was measured, without the delay that the peer reports to have held
    /// the acknowledgment back, all of it; `pto` is the probe timeout without back-off that
    /// follows (RFC 9002, section 6.2.1, `max_ack_delay` included).
    pub fn on_rtt_sample(&mut self, now: Time, path: PathId, rtt: Duration, pto: Duration) {
        if !self.is_armed() || path != self.current {
            return;
        }
        self.silence.on_rtt_sample(rtt, pto);
        if let State::SizeClass(detector) = &mut self.detector {
            detector.on_rtt_sample(now, rtt);
            if detector.alarm(now, path, &self.streams).is_some() {
                self.raise(now);
            }
        }
    }

    /// An ack-eliciting packet was sent on `path`.
    pub fn on_packet_sent(&mut self, now: Time, path: PathId) {
        if path == self.current && self.is_armed() {
            self.silence.on_sent(now);
        }
    }

    /// A packet of the peer's, authenticated, came in on `path`. Once per receive batch is enough,
    /// before the events of what is in it.
    pub fn on_packet_received(&mut self, now: Time, path: PathId) {
        if path == self.current && self.is_armed() {
            self.silence.on_heard(now);
        }
    }

    /// A probe timeout on `path` expired; `pto` is its length without back-off.
    pub fn on_probe_timeout(&mut self, now: Time, path: PathId, pto: Duration) {
        if path != self.current || !self.is_armed() {
            return;
        }
        self.silence.on_probe_timeout(now, pto);
        if self.silence.raised {
            self.raise(now);
        }
    }

    /// A path was validated. An alarm that found none before is decided anew.
    pub fn on_path_validated(&mut self, now: Time, path: PathId) {
        if self.is_armed() && path != self.current && self.alarm(now).is_some() {
            self.raise(now);
        }
    }

    /// A standby path did not answer, or is gone.
    pub fn on_path_failed(&mut self, path: PathId) {
        self.return_watch.on_path_failed(path);
    }

    /// The connection uses `to` now, whoever decided it; `pto` is that path's probe timeout, where
    /// its round trip is known. All averages start anew, so that the new path is not judged by the
    /// old one's; streams in progress are still due, but say nothing about the new path's speed.
    pub fn on_moved(&mut self, now: Time, to: PathId, pto: Option<Duration>) {
        self.current = to;
        self.last_move = Some(now);
        self.wanted = false;
        self.deferred = false;
        self.silence = SilenceWatch::new(now, self.config.probe_timeouts, pto);
        self.return_watch.restart(now);
        match &mut self.detector {
            State::Paper(detector) => detector.restart(),
            State::SizeClass(detector) => detector.restart(),
        }
    }

    /// When to call [`MigrationMonitor::handle_timeout`]; `None` where there is nothing to wait for.
    pub fn timeout(&self) -> Option<Time> {
        if !self.is_armed() {
            return None;
        }
        let deferred = self.settled_at().filter(|_| self.deferred);
        [
            self.next_keepalive(),
            self.silence.deadline(),
            self.return_watch.next_look,
            deferred,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When a PING will be asked for, if nothing happens.
    pub fn next_keepalive(&self) -> Option<Time> {
        if self.is_armed() {
            self.silence.keepalive_at(self.streams.due > 0)
        } else {
            None
        }
    }

    /// [`MigrationMonitor::timeout`] has come. Does nothing where it has not. Packets that have
    /// arrived should be handed in first: they may end the silence.
    pub fn handle_timeout(&mut self, now: Time) -> Wakeup {
        if !self.is_armed() {
            return Wakeup::Nothing;
        }
        let was_raised = self.silence.raised;
        self.silence.handle_timeout(now);
        if self.silence.raised && !was_raised {
            self.raise(now);
        }
        if self.deferred && !self.is_settling(now) {
            self.deferred = false;
            self.wanted |= self.alarm(now).is_some();
        }
        self.wanted |= self.return_watch.take_look(now);
        if self.next_keepalive().is_some_and(|at| at <= now) {
            self.silence.on_keepalive(now);
            return Wakeup::SendPing;
        }
        Wakeup::Nothing
    }

    /// Whether [`MigrationMonitor::decide`] is to be called now.
    pub fn wants_decision(&self) -> bool {
        self.wanted
    }

    /// Whether to move, and where to. `paths` are the connection's paths, the one in use included.
    /// The connection answers with [`MigrationMonitor::on_moved`]; where it does not, it is asked
    /// again once the hysteresis interval is over, if the cause still stands.
    pub fn decide(&mut self, now: Time, paths: &[PathView]) -> Option<Decision> {
        self.wanted = false;
        if !self.is_armed() {
            return None;
        }
        let back = self.return_watch.look(now, self.current, paths);
        if self.is_settling(now) {
            self.deferred |= self.alarm(now).is_some();
            return None;
        }
        let away = self.alarm(now).and_then(|cause| {
            let to = choose(self.current, paths, self.demand(&cause))?;
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

    /// Whether the path in use should be left, and could be, if there were a better one: what is known
    /// of the others may be old.
    pub fn is_stuck(&self, now: Time) -> bool {
        !self.is_settling(now) && self.alarm(now).is_some()
    }

    /// What is wrong with the path in use, if anything is.
    fn alarm(&self, now: Time) -> Option<Cause> {
        if self.silence.raised {
            return Some(Cause::Interruption(self.interruption(now)));
        }
        match &self.detector {
            State::Paper(detector) => detector.alarm().map(Cause::Equation4),
            State::SizeClass(detector) => detector.alarm(now, self.current, &self.streams),
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
                State::Paper(_) => None,
                State::SizeClass(detector) => detector.usual_wait(),
            },
        }
    }

    /// What a new path has to be. The paper asks for nothing: "other available source IP".
    fn demand(&self, cause: &Cause) -> PathRequirement {
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
        if self.is_settling(now) {
            self.deferred = true
        } else {
            self.wanted = true
        }
    }

    /// When the connection may move again.
    fn settled_at(&self) -> Option<Time> {
        self.last_move.map(|moved| moved + self.config.hysteresis)
    }

    fn is_settling(&self, now: Time) -> bool {
        self.settled_at().is_some_and(|settled| now < settled)
    }

    /// How many streams there is room for, and how many completion times are kept.
    #[cfg(test)]
    pub(super) fn memory(&self) -> (usize, usize) {
        let times = match &self.detector {
            State::Paper(detector) => detector.times.len(),
            State::SizeClass(_) => 0,
        };
        (self.streams.capacity(), times)
    }
}
