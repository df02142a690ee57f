//! Proactive migration (DCQUIC paper, section 3.4.1): feeds a client's migration monitor and
//! carries out its decisions.

use weir_units::{Duration, Time};

use super::Connection;
use crate::StreamId;
use crate::event::Event;
use crate::frame::Stream;
use crate::migration::{MigrationMonitor, PathView, Wakeup};
use crate::observe::Observation;
use crate::path::MoveCause;
use crate::path::Path;
use crate::recovery::{SentFrame, SentFrames};

impl Connection {
    /// Returns the monitor, if there is a standby path to move to.
    fn armed(&mut self) -> Option<&mut MigrationMonitor> {
        self.monitor
            .as_deref_mut()
            .filter(|monitor| monitor.is_armed())
    }

    /// Whether the monitor needs reports of packets and streams.
    pub(super) fn is_watched(&self) -> bool {
        self.monitor
            .as_ref()
            .is_some_and(|monitor| monitor.is_armed())
    }

    /// Makes the monitor of a client, which has nothing to do before there is a second path.
    fn make_monitor(&mut self, now: Time) {
        if self.monitor.is_none() && self.side.is_client() {
            // The configuration was checked when the connection was requested.
            let made = MigrationMonitor::new(self.config.migration, now, self.paths[0].id);
            self.monitor = made.ok().map(Box::new);
        }
    }

    /// Reports a change of the path list.
    pub(super) fn note_standby(&mut self, now: Time) {
        let standby = self.paths[1..]
            .iter()
            .any(|path| path.validated || path.validation.is_running());
        if standby {
            self.make_monitor(now);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.set_standby(now, standby);
        }
        self.recovery.precision.has_standby = standby;
    }

    /// Reports a packet sent on the path in use.
    pub(super) fn watch_sent(&mut self, now: Time, frames: &SentFrames, ack_eliciting: bool) {
        let path = self.paths[0].id;
        let Some(monitor) = self.armed() else { return };
        if ack_eliciting {
            monitor.on_packet_sent(now, path);
        }
        for frame in frames {
            if let SentFrame::Stream {
                id, offset, fin, ..
            } = *frame
            {
                if offset == 0 {
                    monitor.on_stream_opened(now, id);
                }
                if fin {
                    monitor.on_request_sent(now, id);
                }
            }
        }
    }

    /// Reports an authentic packet received over a path.
    pub(super) fn watch_received(&mut self, now: Time, path: usize) {
        let path = self.paths[path].id;
        if let Some(monitor) = self.armed() {
            monitor.on_packet_received(now, path);
        }
    }

    /// Reports that no response is expected on a stream any more.
    pub(super) fn watch_abandoned(&mut self, id: StreamId) {
        if let Some(monitor) = self.armed() {
            monitor.on_stream_abandoned(id);
        }
    }

    /// Reports a received part of a response.
    pub(super) fn watch_response(&mut self, now: Time, frame: &Stream<'_>) {
        let complete = self.streams.has_everything(frame.id);
        let Some(monitor) = self.armed() else { return };
        monitor.on_response(now, frame.id);
        if frame.fin {
            monitor.on_fin(now, frame.id, frame.offset, frame.data.len() as u64);
        }
        if complete {
            monitor.on_stream_finished(now, frame.id);
        }
    }

    /// Reports an RTT sample.
    pub(super) fn watch_rtt(&mut self, now: Time, rtt: Duration) {
        let (path, pto) = (self.paths[0].id, self.recovery.pto(&self.paths[0]));
        if let Some(monitor) = self.armed() {
            monitor.on_rtt_sample(now, path, rtt, pto);
        }
    }

    /// Reports a probe timeout on the path in use.
    pub(super) fn watch_probe_timeout(&mut self, now: Time) {
        self.retry_failed_paths(now);
        let (path, pto) = (self.paths[0].id, self.recovery.pto(&self.paths[0]));
        if let Some(monitor) = self.armed() {
            monitor.on_probe_timeout(now, path, pto);
        }
    }

    /// Reports a move to another path.
    pub(super) fn watch_move(&mut self, now: Time) {
        let path = &self.paths[0];
        let pto = path
            .rtt
            .has_sample()
            .then(|| self.recovery.pto(&self.paths[0]));
        let id = path.id;
        self.make_monitor(now);
        if let Some(monitor) = &mut self.monitor {
            monitor.on_moved(now, id, pto);
        }
        self.note_standby(now);
    }

    /// Handles the monitor's timers due at `now`.
    pub(super) fn handle_monitor_timeout(&mut self, now: Time) {
        let due = |monitor: &&mut MigrationMonitor| monitor.timeout().is_some_and(|at| at <= now);
        let wakeup = self
            .armed()
            .filter(due)
            .map(|monitor| monitor.handle_timeout(now));
        if wakeup == Some(Wakeup::SendPing) {
            self.timers.ping_due = true;
        }
    }

    /// Moves if the monitor decides so.
    pub(super) fn decide(&mut self, now: Time) {
        let wanted = self
            .monitor
            .as_ref()
            .is_some_and(|monitor| monitor.wants_decision());
        if !wanted || self.check_migration().is_err() {
            return;
        }
        let preferred = self.table.preferred;
        let views: Vec<_> = (0..self.paths.len())
            .map(|index| {
                let path = &self.paths[index];
                PathView {
                    id: path.id,
                    validated: index == 0 || self.is_ready(index),
                    preferred: preferred.is_some() && path.local == preferred,
                    rtt: path.rtt.has_sample().then_some(path.rtt.smoothed),
                    loss: loss(path, index == 0),
                }
            })
            .collect();
        let decision = self.armed().and_then(|monitor| monitor.decide(now, &views));
        let Some(decision) = decision else {
            if self
                .armed()
                .is_some_and(|monitor| monitor.wants_better_path(now))
            {
                self.probe_standby_paths(now);
            }
            return;
        };
        let index = self.paths.iter().position(|path| path.id == decision.to);
        if let Some(index) = index {
            tracing::info!(remote = %self.path().remote, %decision, "moving");
            self.report(now, &Observation::Moving(&decision));
            self.events.push_back(Event::Moving(Box::new(decision)));
            self.activate(now, index, MoveCause::Proactive);
        }
    }
}

/// Returns a path's loss rate: of sent packets if it is in use, otherwise of challenges.
fn loss(path: &Path, in_use: bool) -> f64 {
    if !in_use {
        return path.standby.loss;
    }
    path.stats.packets_lost as f64 / path.stats.packets_sent.max(1) as f64
}
