//! The enforcer, until a signal ends it.

use std::path::Path;

use tokio::runtime::Runtime;
use weir_enforce::ebpf::control::{Answer, Control, Question};
use weir_enforce::ebpf::{Enforcer, Plane};
use weir_metrics::{Exporter, Registry};
use weir_scenario::Policy;

use super::Enforce;
use crate::failure::Failure;
use crate::interrupt::{Hangup, Stop};
use crate::output;

pub(super) fn run(arguments: &Enforce, file: &Path) -> Result<(), Failure> {
    let policy = load(file).map_err(Failure::Failed)?;
    let rules = policy.rules.len();
    // A signal that comes while the programs are put in place has to remove them.
    let (stop, hangup) = (Stop::on_signals()?, Hangup::on_signals()?);
    let options = arguments.options();
    let control = Control::listen(&arguments.control).map_err(Failure::of)?;
    let plane = Plane::attach(&arguments.interface, &options).map_err(Failure::of)?;
    let mut enforcer = Enforcer::new(plane, policy, &options);
    let exporter = match arguments.metrics {
        Some(address) => Some(Metrics::start(address, &mut enforcer)?),
        None => None,
    };
    let metrics = exporter.as_ref().map_or(String::new(), |metrics| {
        format!(", http://{}/metrics", metrics.exporter.local_address())
    });
    output::print(&format!(
        "{}: {rules} rules on {}{metrics}\n",
        file.display(),
        arguments.interface.join(", "),
    ))?;
    while !stop.is_said() {
        enforcer.step().map_err(Failure::of)?;
        for name in enforcer.take_gone() {
            eprintln!("the interface {name} is gone: its flows are their ends' own again");
        }
        if enforcer.is_idle() {
            return Err(Failure::Failed("no interface is left".to_owned()));
        }
        if hangup.take()
            && let Answer::Refused { reason } = reload(&mut enforcer, file)
        {
            eprintln!("{reason}\nthe policy before it stays in force");
        }
        while let Some(asked) = control.next() {
            let answer = match asked.question {
                Question::Status => Answer::Status(enforcer.status()),
                Question::Reload => reload(&mut enforcer, file),
            };
            asked.answer(answer);
        }
    }
    eprintln!("the programs are removed: TCP goes on by its own congestion control");
    Ok(())
}

/// A file with mistakes changes nothing.
fn reload(enforcer: &mut Enforcer, file: &Path) -> Answer {
    match load(file) {
        Ok(policy) => {
            let rules = policy.rules.len();
            enforcer.set_policy(policy);
            Answer::Reloaded {
                file: file.to_owned(),
                rules,
            }
        }
        Err(reason) => Answer::Refused { reason },
    }
}

/// A policy that can be enforced here, or what is wrong with it.
fn load(file: &Path) -> Result<Policy, String> {
    let policy = Policy::load(file).map_err(|error| error.to_string())?;
    match Enforcer::check(&policy) {
        Ok(()) => Ok(policy),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// An exporter, and what it runs on.
struct Metrics {
    exporter: Exporter,
    _runtime: Runtime,
}

impl Metrics {
    fn start(address: std::net::SocketAddr, enforcer: &mut Enforcer) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let registry = Registry::new();
        enforcer.set_registry(&registry);
        let exporter = runtime
            .block_on(Exporter::bind(address, registry))
            .map_err(Failure::of)?;
        Ok(Self {
            exporter,
            _runtime: runtime,
        })
    }
}
