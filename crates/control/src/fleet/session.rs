//! Hosts that are attached.

use std::collections::BTreeMap;

use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use weir_rollout::{Assignment, Fleet, Hello, MetricsOrder, TextDigest};

use super::translate;
use crate::policy_v1 as v1;

/// Where messages to a host go.
pub(crate) type ToHostSender = mpsc::Sender<Box<Result<v1::ToHost, Status>>>;

/// The most messages that wait to be sent to a host.
pub(super) const WAITING: usize = 8;

/// A host that is attached.
#[derive(Debug)]
pub(super) struct HostSession {
    pub(super) number: u64,
    pub(super) hello: Hello,
    outgoing: ToHostSender,
    /// The version that it was told of last.
    told: Option<(u64, TextDigest)>,
    metrics: Option<MetricsOrder>,
    is_told_behind: bool,
    /// The stream ends when this is dropped.
    _end: oneshot::Sender<()>,
}

/// A session that has begun.
#[derive(Debug)]
pub(crate) struct AttachedHost {
    pub(super) session: u64,
    /// Completes when the task has ended the session.
    pub(super) over: oneshot::Receiver<()>,
}

/// All of them, by their names.
#[derive(Debug, Default)]
pub(super) struct HostSessions {
    by_name: BTreeMap<String, HostSession>,
    last: u64,
}

impl HostSessions {
    /// Takes a host in, in the place of a session of the same name.
    pub(super) fn attach(&mut self, hello: Hello, outgoing: ToHostSender) -> AttachedHost {
        self.last += 1;
        let (end, over) = oneshot::channel();
        let held = hello.held.as_ref();
        let session = HostSession {
            number: self.last,
            told: held.map(|held| (held.version, held.digest.clone())),
            metrics: None,
            is_told_behind: false,
            outgoing,
            hello,
            _end: end,
        };
        let name = session.hello.name.clone();
        if self.by_name.insert(name.clone(), session).is_some() {
            tracing::warn!(host = name, "it is attached twice: the former session ends");
        }
        AttachedHost {
            session: self.last,
            over,
        }
    }

    /// Returns the session of a name, if it has this number.
    pub(super) fn get(&mut self, name: &str, number: u64) -> Option<&mut HostSession> {
        let session = self.by_name.get_mut(name);
        session.filter(|session| session.number == number)
    }

    /// Ends a session. Returns whether there was one of this number.
    pub(super) fn detach(&mut self, name: &str, number: u64) -> bool {
        let is_known = self.get(name, number).is_some();
        if is_known {
            self.by_name.remove(name);
        }
        is_known
    }

    /// Returns whether a host is attached.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Tells all hosts what they are to have and to report. Returns those that do not keep up, whose sessions end.
    pub(super) fn tell_all(&mut self, fleet: &Fleet) -> Vec<String> {
        let metrics = fleet.metrics_order();
        let slow = self.by_name.values_mut();
        let slow = slow.filter_map(|session| {
            let is_slow = !session.tell(fleet, metrics);
            is_slow.then(|| session.hello.name.clone())
        });
        let slow: Vec<_> = slow.collect();
        for name in &slow {
            self.by_name.remove(name);
        }
        slow
    }

    /// Tells a host that has just attached, and has room.
    pub(super) fn tell(&mut self, name: &str, fleet: &Fleet, metrics: Option<MetricsOrder>) {
        if let Some(session) = self.by_name.get_mut(name) {
            session.tell(fleet, metrics);
        }
    }
}

impl HostSession {
    /// Tells the host what has changed for it. Returns whether it keeps up.
    fn tell(&mut self, fleet: &Fleet, metrics: Option<MetricsOrder>) -> bool {
        match fleet.assignment(&self.hello.name) {
            Some(assignment) => {
                let wanted = (assignment.version, assignment.digest.clone());
                if self.told.as_ref() != Some(&wanted) {
                    if !self.send(assigned(fleet, &assignment)) {
                        return false;
                    }
                    self.told = Some(wanted);
                }
            }
            None if self.hello.held.is_some() && !self.is_told_behind => {
                let revision = fleet.state().revision;
                self.is_told_behind = true;
                if !self.send(v1::to_host::Message::Behind(v1::Behind { revision })) {
                    return false;
                }
            }
            None => {}
        }
        if self.metrics != metrics {
            self.metrics = metrics;
            let order = v1::MetricsOrder {
                span_nanoseconds: metrics.map_or(0, |order| order.span.as_nanos()),
                interval_nanoseconds: metrics.map_or(0, |order| order.interval.as_nanos()),
            };
            return self.send(v1::to_host::Message::Metrics(order));
        }
        true
    }

    fn send(&self, message: v1::to_host::Message) -> bool {
        let message = v1::ToHost {
            message: Some(message),
        };
        self.outgoing.try_send(Box::new(Ok(message))).is_ok()
    }
}

fn assigned(fleet: &Fleet, assignment: &Assignment) -> v1::to_host::Message {
    let version = fleet.version(assignment.version);
    let text = version.map_or("", |version| version.text.as_str());
    v1::to_host::Message::Assignment(translate::to_assignment(assignment, text))
}
