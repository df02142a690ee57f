//! Runs the enforcer until a signal ends it.

use std::path::Path;

use tokio::runtime::Runtime;
use weir_enforce::operation::control::{Control, ControlRequest, ControlResponse};
use weir_enforce::operation::{Enforce as DataPlane, PolicyMetrics};
use weir_enforce::{ebpf, inline};
use weir_metrics::{Exporter, Registry};
use weir_policy::{Policy, RuleChange};
use weir_scenario::ScenarioError;

use super::Enforce;
use crate::failure::Failure;
use crate::interrupt::{Hangup, Stop};
use crate::policy::Plane;
use crate::{logging, output, service_manager};

pub(super) fn run(arguments: &Enforce, file: &Path) -> Result<(), Failure> {
    match arguments.inline.as_deref() {
        Some([one, other]) => Running {
            file,
            plane: Plane::Inline,
            interfaces: vec![one.clone(), other.clone()],
            location: format!("between {one} and {other}"),
            interface_gone_message: "nothing passes any more",
            end_message: "nothing passes any more",
        }
        .run(arguments, |policy| {
            let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
            inline::Enforcer::attach([one, other], policy, arguments.limits(), seed)
                .map_err(Failure::of)
        }),
        _ => Running {
            file,
            plane: Plane::Enforce,
            interfaces: arguments.interface.clone(),
            location: format!("on {}", arguments.interface.join(", ")),
            interface_gone_message: "its flows are their ends' own again",
            end_message: "the programs are removed: TCP goes on by its own congestion control",
        }
        .run(arguments, |policy| {
            let options = arguments.options();
            let plane =
                ebpf::DataPlane::attach(&arguments.interface, &options).map_err(Failure::of)?;
            Ok(ebpf::Enforcer::new(plane, policy, &options))
        }),
    }
}

/// The parts of a run that depend on the data plane.
struct Running<'f> {
    /// The policy file.
    file: &'f Path,
    /// What the policy is checked for.
    plane: Plane,
    /// The interfaces, by name.
    interfaces: Vec<String>,
    /// Where flows are controlled, for messages.
    location: String,
    /// The message for an interface that has disappeared.
    interface_gone_message: &'static str,
    /// The message after the end of the run.
    end_message: &'static str,
}

impl Running<'_> {
    fn run<P: DataPlane>(
        &self,
        arguments: &Enforce,
        attach: impl FnOnce(Policy) -> Result<P, Failure>,
    ) -> Result<(), Failure> {
        let mut policy = self.load().map_err(Failure::of)?;
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
            self.file.display(),
            self.location,
        ))?;
        service_manager::ready(&self.status(rules));
        while !stop.should_stop() {
            plane.step().map_err(Failure::logged)?;
            for name in plane.take_gone() {
                tracing::warn!(
                    "the interface {name} is gone: {}",
                    self.interface_gone_message
                );
            }
            if plane.is_over() {
                return Err(Failure::logged(self.over(&plane)));
            }
            if hangup.take() {
                self.reload(&mut plane, &mut policy, &metrics, "SIGHUP");
            }
            while let Some(asked) = control.next() {
                let answer = match asked.request {
                    ControlRequest::Status => ControlResponse::Status(Box::new(plane.status())),
                    ControlRequest::Reload => {
                        let peer = asked.peer.map(|peer| peer.to_string());
                        let peer = peer.as_deref().unwrap_or("an unknown process");
                        self.reload(&mut plane, &mut policy, &metrics, peer)
                    }
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
        service_manager::reloading();
        let file = self.file.display();
        let answer = match self.load() {
            Ok(new) => {
                let (rules, changes) = (new.rules.len(), changes(policy, &new));
                tracing::info!("{file}: reloaded, asked by {asked_by}: {rules} rules; {changes}");
                *policy = new.clone();
                plane.set_policy(new);
                metrics.set_rules(rules);
                ControlResponse::Reloaded {
                    file: self.file.to_owned(),
                    rules,
                }
            }
            Err(error) => {
                let mistakes = logging::in_one_line(&error);
                tracing::warn!(
                    "{file}: not reloaded, asked by {asked_by}: {mistakes}; the policy before it stays in force"
                );
                ControlResponse::Refused {
                    reason: error.to_string(),
                }
            }
        };
        metrics.reloaded(matches!(answer, ControlResponse::Reloaded { .. }));
        service_manager::ready(&self.status(policy.rules.len()));
        answer
    }

    /// Loads the policy and checks that it can be enforced here; logs warnings.
    fn load(&self) -> Result<Policy, ScenarioError> {
        let checked = self.plane.load(self.file, &self.interfaces);
        for warning in &checked.warnings {
            tracing::warn!("{warning}");
        }
        checked.policy
    }

    /// Returns what the service manager shows.
    fn status(&self, rules: usize) -> String {
        format!("{rules} rules {}", self.location)
    }

    fn over(&self, plane: &impl DataPlane) -> String {
        match plane.status().totals.in_line {
            Some(_) => "a cable needs both its interfaces".to_owned(),
            None => "no interface is left".to_owned(),
        }
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
