//! Runs the enforcer until a signal ends it.

use std::path::Path;

use tokio::runtime::Runtime;
use weir_enforce::operation::control::{Control, ControlRequest, ControlResponse, Peer};
use weir_enforce::operation::{Enforce as DataPlane, PolicyMetrics};
use weir_enforce::{cgroup, ebpf, inline};
use weir_metrics::{Exporter, Registry};
use weir_policy::{Policy, RuleChange};
use weir_scenario::ScenarioError;

use super::followed::{Assigned, Followed};
use super::{Enforce, guard};
use crate::fail_open;
use crate::failure::Failure;
use crate::interrupt::{Hangup, Stop};
use crate::policy::Plane;
use crate::{logging, output, service_manager};

/// Where the policy comes from.
pub(super) enum Source<'f> {
    /// A file, which is read again when that is asked for.
    File(&'f Path),
    /// A controller, which replaces it at any time.
    Controller(Box<Followed>),
}

pub(super) fn run(arguments: &Enforce, source: Source<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.cgroup {
        return at_sockets(arguments, path, source);
    }
    let measures = matches!(source, Source::Controller(_));
    match arguments.inline.as_deref() {
        Some([one, other]) => Running {
            source,
            plane: Plane::Inline,
            interfaces: vec![one.clone(), other.clone()],
            location: format!("between {one} and {other}"),
            gone: ("the interface", "nothing passes any more"),
            over_message: "a cable needs both its interfaces",
            end_message: "nothing passes any more",
        }
        .run(arguments, |policy| {
            let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
            let mut cable =
                inline::Enforcer::attach([one, other], policy, arguments.limits(), seed)
                    .map_err(Failure::of)?;
            if measures {
                cable.measure();
            }
            if arguments.fail_closed {
                fail_open::disarm(&cable)?;
            } else {
                fail_open::arm(&mut cable, [one, other])?;
            }
            Ok(cable)
        }),
        _ => Running {
            source,
            plane: Plane::Enforce,
            interfaces: arguments.interface.clone(),
            location: format!("on {}", arguments.interface.join(", ")),
            gone: ("the interface", "its flows are their ends' own again"),
            over_message: "no interface is left",
            end_message: "the programs are removed: TCP goes on by its own congestion control",
        }
        .run(arguments, |policy| {
            let options = arguments.options();
            let plane =
                ebpf::DataPlane::attach(&arguments.interface, &options).map_err(Failure::of)?;
            let mut enforcer = ebpf::Enforcer::new(plane, policy, &options);
            if measures {
                enforcer.measure();
            }
            Ok(enforcer)
        }),
    }
}

/// Chooses the kernel's congestion control for the sockets of a control group.
fn at_sockets(arguments: &Enforce, path: &Path, source: Source<'_>) -> Result<(), Failure> {
    let measures_all = matches!(source, Source::Controller(_));
    let dry = if arguments.dry_run {
        ", dry run: nothing is changed"
    } else {
        ""
    };
    Running {
        source,
        plane: Plane::Cgroup,
        interfaces: Vec::new(),
        location: format!("at the sockets of {}{dry}", path.display()),
        gone: ("the control group", "its sockets have what they had"),
        over_message: "the control group was removed",
        end_message: "the sockets have what they had: TCP goes on by its own congestion control",
    }
    .run(arguments, |policy| {
        let options = cgroup::Options {
            is_dry_run: arguments.dry_run,
            measures_all,
            guardian: Some(guard::command),
        };
        cgroup::Enforcer::attach(path, policy, options).map_err(Failure::of)
    })
}

/// The parts of a run that depend on the data plane.
struct Running<'f> {
    /// Where the policy comes from.
    source: Source<'f>,
    /// What the policy is checked for.
    plane: Plane,
    /// The interfaces, by name.
    interfaces: Vec<String>,
    /// Where flows are controlled, for messages.
    location: String,
    /// What may disappear, and the message for that.
    gone: (&'static str, &'static str),
    /// The error when too little is left.
    over_message: &'static str,
    /// The message after the end of the run.
    end_message: &'static str,
}

impl Running<'_> {
    fn run<P: DataPlane>(
        mut self,
        arguments: &Enforce,
        attach: impl FnOnce(Policy) -> Result<P, Failure>,
    ) -> Result<(), Failure> {
        let mut policy = match &self.source {
            Source::File(file) => self.load(file).map_err(Failure::of)?,
            Source::Controller(followed) => followed.first(self.plane, &self.interfaces)?,
        };
        let rules = policy.rules.len();
        // A signal during attachment must still remove what was attached.
        let (stop, hangup) = (Stop::on_signals()?, Hangup::on_signals()?);
        let control = Control::listen(&arguments.control).map_err(Failure::of)?;
        let mut plane = attach(policy.clone())?;
        let registry = Registry::new();
        plane.set_registry(&registry);
        let metrics = PolicyMetrics::register(&registry);
        metrics.set_rules(rules);
        let exporter = match arguments.metrics {
            Some(address) => Some(Metrics::start(address, registry)?),
            None => None,
        };
        let address = exporter.as_ref().map_or(String::new(), |metrics| {
            format!(", http://{}/metrics", metrics.exporter.local_address())
        });
        output::print(&format!(
            "{}: {rules} rules {}{address}\n",
            self.origin(),
            self.location,
        ))?;
        service_manager::ready(&self.status(rules));
        while !stop.should_stop() {
            plane.step().map_err(Failure::logged)?;
            for name in plane.take_gone() {
                let (what, message) = self.gone;
                tracing::warn!("{what} {name} is gone: {message}");
            }
            for warning in plane.take_warnings() {
                tracing::warn!("{warning}");
            }
            if plane.is_over() {
                drop(plane);
                return Err(Failure::logged(self.over_message));
            }
            self.follow(&mut plane, &mut policy, &metrics);
            if hangup.take() {
                self.reload(&mut plane, &mut policy, &metrics, "SIGHUP");
            }
            while let Some(asked) = control.next() {
                let answer = match asked.request {
                    ControlRequest::Status => ControlResponse::Status(Box::new(plane.status())),
                    ControlRequest::Reload => {
                        let peer = name(asked.peer);
                        self.reload(&mut plane, &mut policy, &metrics, &peer)
                    }
                    ControlRequest::Resume { rule } => resume(&mut plane, rule, &name(asked.peer)),
                };
                asked.answer(answer);
            }
        }
        service_manager::stopping();
        tracing::info!("{}", self.end_message);
        Ok(())
    }

    /// Reloads the policy file, and logs who asked for it and what changes. A file with mistakes changes
    /// nothing.
    fn reload(
        &self,
        plane: &mut impl DataPlane,
        policy: &mut Policy,
        metrics: &PolicyMetrics,
        asked_by: &str,
    ) -> ControlResponse {
        let Source::File(file) = self.source else {
            return ControlResponse::Refused {
                reason: format!(
                    "the policy is {}: `weir policy push` changes it",
                    self.origin()
                ),
            };
        };
        service_manager::reloading();
        let path = file.to_owned();
        let loaded = self.load(file).map_err(|error| error.to_string());
        let file = file.display();
        let in_force = loaded.and_then(|new| match plane.set_policy(new.clone()) {
            Ok(()) => Ok(new),
            Err(error) => Err(error.to_string()),
        });
        let answer = match in_force {
            Ok(new) => {
                let (rules, changes) = (new.rules.len(), changes(policy, &new));
                tracing::info!("{file}: reloaded, asked by {asked_by}: {rules} rules; {changes}");
                *policy = new;
                metrics.set_rules(rules);
                ControlResponse::Reloaded { file: path, rules }
            }
            Err(reason) => {
                let mistakes = logging::in_one_line(&reason);
                tracing::warn!(
                    "{file}: not reloaded, asked by {asked_by}: {mistakes}; the policy before it stays in force"
                );
                ControlResponse::Refused { reason }
            }
        };
        metrics.reloaded(matches!(answer, ControlResponse::Reloaded { .. }));
        service_manager::ready(&self.status(policy.rules.len()));
        answer
    }

    /// Names the file, or the version and where it comes from.
    fn origin(&self) -> String {
        match &self.source {
            Source::File(file) => file.display().to_string(),
            Source::Controller(followed) => {
                let version = match followed.version() {
                    0 => "no version".to_owned(),
                    version => format!("version {version}"),
                };
                format!("{version} of a controller ({})", followed.connection())
            }
        }
    }

    /// Puts versions of a controller in force, and reports what connections did.
    fn follow(&mut self, plane: &mut impl DataPlane, policy: &mut Policy, metrics: &PolicyMetrics) {
        let Source::Controller(followed) = &mut self.source else {
            return;
        };
        while let Some(assigned) = followed.next(self.plane, &self.interfaces) {
            match put_in_force(followed, plane, policy, &assigned) {
                Ok(()) => {
                    let (new, version) = (assigned.policy.clone(), assigned.version());
                    let (rules, changes) = (new.rules.len(), changes(policy, &new));
                    tracing::info!("version {version} is in force: {rules} rules; {changes}");
                    *policy = new;
                    metrics.set_rules(rules);
                    metrics.reloaded(true);
                    service_manager::ready(&format!(
                        "version {version}, {rules} rules {}",
                        self.location
                    ));
                }
                Err(reason) => {
                    metrics.reloaded(false);
                    followed.refuse(assigned.version(), &logging::in_one_line(&reason));
                }
            }
        }
        followed.report(plane);
    }

    /// Loads the policy and checks that it can be enforced here; logs warnings.
    fn load(&self, file: &Path) -> Result<Policy, ScenarioError> {
        let checked = self.plane.load(file, &self.interfaces);
        for warning in &checked.warnings {
            tracing::warn!("{warning}");
        }
        checked.policy
    }

    /// Returns what the service manager shows.
    fn status(&self, rules: usize) -> String {
        format!("{rules} rules {}", self.location)
    }
}

/// Puts a version in force and keeps it; or else the one before stays.
fn put_in_force(
    followed: &mut Followed,
    plane: &mut impl DataPlane,
    before: &Policy,
    assigned: &Assigned,
) -> Result<(), String> {
    let put = plane.set_policy(assigned.policy.clone());
    put.map_err(|error| error.to_string())?;
    followed
        .keep(assigned)
        .map_err(|reason| match plane.set_policy(before.clone()) {
            Ok(()) => reason,
            Err(error) => {
                format!("{reason}; the policy before it cannot be put in force again: {error}")
            }
        })
}

/// Names the process that asks for something.
fn name(peer: Option<Peer>) -> String {
    peer.map_or("an unknown process".to_owned(), |peer| peer.to_string())
}

/// Puts a rule that a guard has taken back in force again, and logs who asked for it.
fn resume(plane: &mut impl DataPlane, rule: u32, asked_by: &str) -> ControlResponse {
    match plane.resume(rule) {
        Ok(()) => {
            tracing::info!("the rule on line {rule} is in force again, asked by {asked_by}");
            ControlResponse::Resumed { rule }
        }
        Err(error) => ControlResponse::Refused {
            reason: error.to_string(),
        },
    }
}

/// The most changed rules that one line of the log lists.
const MOST_LISTED: usize = 20;

/// Describes the difference between two versions of a policy.
fn changes(old: &Policy, new: &Policy) -> String {
    let changes = old.changes(new);
    let listed = changes.iter().take(MOST_LISTED);
    let mut texts: Vec<_> = listed.map(RuleChange::to_string).collect();
    match changes.len() {
        0 => texts.push("no rule changed".to_owned()),
        count if count > MOST_LISTED => texts.push(format!("and {} more", count - MOST_LISTED)),
        _ => {}
    }
    texts.join(", ")
}

/// A metrics exporter and its runtime.
struct Metrics {
    exporter: Exporter,
    _runtime: Runtime,
}

impl Metrics {
    fn start(address: std::net::SocketAddr, registry: Registry) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let exporter = runtime
            .block_on(Exporter::bind(address, registry))
            .map_err(Failure::of)?;
        Ok(Self {
            exporter,
            _runtime: runtime,
        })
    }
}
