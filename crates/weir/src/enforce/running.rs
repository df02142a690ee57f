//! Runs the enforcer until a signal ends it.

use std::path::Path;

use tokio::runtime::Runtime;
use weir_enforce::operation::Enforce as DataPlane;
use weir_enforce::operation::control::{Control, ControlRequest, ControlResponse};
use weir_enforce::{ebpf, inline};
use weir_metrics::{Exporter, Registry};
use weir_policy::Policy;
use weir_scenario::load_policy;

use super::Enforce;
use crate::fail_open;
use crate::failure::Failure;
use crate::interrupt::{Hangup, Stop};
use crate::output;

pub(super) fn run(arguments: &Enforce, file: &Path) -> Result<(), Failure> {
    match arguments.inline.as_deref() {
        Some([one, other]) => Running {
            file,
            check: |_| Ok(()),
            location: format!("between {one} and {other}"),
            interface_gone_message: "nothing passes any more",
            end_message: "nothing passes any more",
        }
        .run(arguments, |policy| {
            let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
            let mut cable =
                inline::Enforcer::attach([one, other], policy, arguments.limits(), seed)
                    .map_err(Failure::of)?;
            if arguments.fail_closed {
                fail_open::disarm(&cable)?;
            } else {
                fail_open::arm(&mut cable, [one, other])?;
            }
            Ok(cable)
        }),
        _ => Running {
            file,
            check: |policy| ebpf::Enforcer::check(policy).map_err(|error| error.to_string()),
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
    /// Checks whether the data plane can enforce a policy; the error names the reason.
    check: fn(&Policy) -> Result<(), String>,
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
        let policy = self.load().map_err(Failure::Failed)?;
        let rules = policy.rules.len();
        // A signal during attachment must still remove what was attached.
        let (stop, hangup) = (Stop::on_signals()?, Hangup::on_signals()?);
        let control = Control::listen(&arguments.control).map_err(Failure::of)?;
        let mut plane = attach(policy)?;
        let exporter = match arguments.metrics {
            Some(address) => Some(Metrics::start(address, &mut plane)?),
            None => None,
        };
        let metrics = exporter.as_ref().map_or(String::new(), |metrics| {
            format!(", http://{}/metrics", metrics.exporter.local_address())
        });
        output::print(&format!(
            "{}: {rules} rules {}{metrics}\n",
            self.file.display(),
            self.location,
        ))?;
        while !stop.should_stop() {
            plane.step().map_err(Failure::of)?;
            for name in plane.take_gone() {
                eprintln!(
                    "the interface {name} is gone: {}",
                    self.interface_gone_message
                );
            }
            if plane.is_over() {
                return Err(Failure::Failed(self.over(&plane)));
            }
            if hangup.take()
                && let ControlResponse::Refused { reason } = self.reload(&mut plane)
            {
                eprintln!("{reason}\nthe policy before it stays in force");
            }
            while let Some(asked) = control.next() {
                let answer = match asked.request {
                    ControlRequest::Status => ControlResponse::Status(Box::new(plane.status())),
                    ControlRequest::Reload => self.reload(&mut plane),
                };
                asked.answer(answer);
            }
        }
        eprintln!("{}", self.end_message);
        Ok(())
    }

    /// Reloads the policy file. A file with mistakes changes nothing.
    fn reload(&self, plane: &mut impl DataPlane) -> ControlResponse {
        match self.load() {
            Ok(policy) => {
                let rules = policy.rules.len();
                plane.set_policy(policy);
                ControlResponse::Reloaded {
                    file: self.file.to_owned(),
                    rules,
                }
            }
            Err(reason) => ControlResponse::Refused { reason },
        }
    }

    /// Loads the policy and checks that it can be enforced here.
    fn load(&self) -> Result<Policy, String> {
        let policy = load_policy(self.file).map_err(|error| error.to_string())?;
        match (self.check)(&policy) {
            Ok(()) => Ok(policy),
            Err(error) => Err(format!("{}: {error}", self.file.display())),
        }
    }

    fn over(&self, plane: &impl DataPlane) -> String {
        match plane.status().totals.in_line {
            Some(_) => "a cable needs both its interfaces".to_owned(),
            None => "no interface is left".to_owned(),
        }
    }
}

/// A metrics exporter and its runtime.
struct Metrics {
    exporter: Exporter,
    _runtime: Runtime,
}

impl Metrics {
    fn start(address: std::net::SocketAddr, plane: &mut impl DataPlane) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let registry = Registry::new();
        plane.set_registry(&registry);
        let exporter = runtime
            .block_on(Exporter::bind(address, registry))
            .map_err(Failure::of)?;
        Ok(Self {
            exporter,
            _runtime: runtime,
        })
    }
}
