//! `weir sed agent`

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use weir_control::{AgentChannel, AgentOptions, AgentState, PortDescription};
use weir_enforce::inline::{AgentBridge, TxQueue};
use weir_fabric::ConnectionLimits;
use weir_metrics::{Exporter, Registry};
use weir_policy::Prefix;
use weir_sed::AgentConfig;
use weir_units::{ByteSize, Duration, Rate};

use super::per_interface::{
    PerInterface, optional_per_interface, per_interface, required_per_interface,
};
use super::{CertificateArguments, controller_address};
use crate::fail_open;
use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::{output, service_manager};

/// The arguments of `weir sed agent`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sed certificates /etc/weir/sed --switch tor1
  weir sed agent --inline lan0 wan0 --rate 940Mbps --name tor1 --controllers 10.0.0.5
  weir sed agent --inline lan0 wan0 --rate lan0=9.9Gbps --rate wan0=990Mbps --buffer 150KB \\
      --name tor1 --controllers 10.0.0.5,10.0.0.6:9600 --metrics 9102

All frames that come in at one of the two interfaces leave by the other, through a queue of its own that is
emptied at the given rate: a little less than the link's, so that what has to wait waits here. From which
length on a queue is congested, and all else, the controller says. Without a controller everything passes
as it is. If weir is killed or hangs, frames pass without it and its queues (Linux 6.6); the next start takes
over, and `weir enforce clean` removes that. When it ends by Ctrl-C, SIGTERM or an error, nothing passes any
more. The interfaces want no addresses of their own.

`weir sed status` shows what the controller knows of it; docs/sed.md tells where to run it.")]
pub(crate) struct Agent {
    /// Two interfaces to bridge
    #[arg(long, value_names = ["NAME", "NAME"], num_args = 2, required = true)]
    inline: Vec<String>,

    /// Drain rate of the queue of an interface, with Ethernet's framing; for both, or for each
    /// (repeatable)
    #[arg(long, value_name = "[NAME=]RATE", required = true)]
    rate: Vec<PerInterface<Rate>>,

    /// Buffer size of the queue of an interface
    #[arg(long, value_name = "[NAME=]SIZE", default_value = "512KB")]
    buffer: Vec<PerInterface<ByteSize>>,

    /// Queue length above which ECN-capable packets are marked, as DCTCP wants; by default none is
    #[arg(long, value_name = "[NAME=]SIZE")]
    ecn_threshold: Vec<PerInterface<ByteSize>>,

    /// Addresses behind an interface, for senders that are their own agents (repeatable)
    #[arg(long, value_name = "NAME=PREFIX")]
    behind: Vec<PerInterface<Prefix>>,

    /// Name of the switch, as in its certificate
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Candidate controllers; the agent uses the first one that accepts it
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        value_delimiter = ',',
        required = true
    )]
    controllers: Vec<String>,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// Maximum number of tracked connections; others pass
    #[arg(long, value_name = "COUNT", default_value_t = ConnectionLimits::default().connections as u32,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    flows: u32,

    /// Let nothing pass when this process dies or hangs; by default frames then pass without it
    #[arg(long)]
    fail_closed: bool,

    /// Serve Prometheus metrics by HTTP at /metrics; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<SocketAddr>,
}

/// The time for which frames are forwarded between two checks of the stop flag and the agent's state.
const STEP: Duration = Duration::from_millis(50);

/// The minimum buffer of a queue: one jumbo frame, or such frames could never be sent.
const SMALLEST_BUFFER: ByteSize = ByteSize::from_bytes(9_216);

impl Agent {
    pub(crate) fn run(&self, runtime: &Runtime) -> Result<(), Failure> {
        let names = self.names()?;
        let outlets = self.tx_queues(names)?;
        let ports = self.ports(names, outlets)?;
        let credentials = self.certificates.credentials(&self.name)?;
        let stop = Stop::on_signals()?;
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let config = AgentConfig {
            connections: ConnectionLimits {
                connections: self.flows as usize,
                ..ConnectionLimits::default()
            },
            ..AgentConfig::paper()
        };
        let mut cable = AgentBridge::attach(names, outlets, config, seed).map_err(Failure::of)?;
        let registry = Registry::new();
        cable.set_registry(&registry);
        let exporter = self.export(runtime, &registry)?;
        if self.fail_closed {
            fail_open::disarm(&cable)?;
        } else {
            fail_open::arm(&mut cable, names)?;
        }
        let waker = cable.waker();
        let entered = runtime.enter();
        let channel = AgentChannel::start(AgentOptions {
            controllers: self
                .controllers
                .iter()
                .map(|text| controller_address(text))
                .collect(),
            credentials,
            name: self.name.clone(),
            ports,
            wake: Some(Arc::new(move || waker.wake())),
            metrics: Some(registry),
        });
        drop(entered);
        let [one, other] = outlets;
        let metrics = exporter.as_ref().map_or(String::new(), |exporter| {
            format!(", http://{}/metrics", exporter.local_address())
        });
        output::print(&format!(
            "{}: {} at {}, {} at {}{metrics}\n",
            self.name, names[0], one.rate, names[1], other.rate
        ))?;
        service_manager::ready("no controller yet; everything passes");
        pass(&mut cable, channel, &stop)?;
        service_manager::stopping();
        tracing::info!("nothing passes any more");
        Ok(())
    }

    fn names(&self) -> Result<[&str; 2], Failure> {
        match self.inline.as_slice() {
            [one, other] => Ok([one, other]),
            _ => Err(Failure::option("inline", "it takes two interfaces")),
        }
    }

    fn tx_queues(&self, names: [&str; 2]) -> Result<[TxQueue; 2], Failure> {
        let rates = required_per_interface("rate", names, &self.rate)?;
        let buffers = required_per_interface("buffer", names, &self.buffer)?;
        if let Some(rate) = rates.into_iter().find(|rate| rate.is_zero()) {
            let problem = format!("nothing leaves at {rate}");
            return Err(Failure::option("rate", problem));
        }
        if let Some(buffer) = buffers.into_iter().find(|buffer| *buffer < SMALLEST_BUFFER) {
            let problem = format!("{buffer} is less than a jumbo frame has, {SMALLEST_BUFFER}");
            return Err(Failure::option("buffer", problem));
        }
        let thresholds = optional_per_interface("ecn-threshold", names, &self.ecn_threshold)?;
        Ok([0, 1].map(|side| TxQueue {
            rate: rates[side],
            buffer: buffers[side],
            ecn_threshold: thresholds[side],
        }))
    }

    fn ports(
        &self,
        names: [&str; 2],
        outlets: [TxQueue; 2],
    ) -> Result<Vec<PortDescription>, Failure> {
        let behind = per_interface("behind", names, &self.behind)?;
        let sides = names.into_iter().zip(outlets).zip(behind);
        let port = |(number, ((name, outlet), behind)): (u32, ((&str, TxQueue), Vec<Prefix>))| {
            let prefix = |prefix: Prefix| (prefix.address(), prefix.length());
            PortDescription {
                number,
                name: name.to_owned(),
                rate: outlet.rate,
                buffer: Some(outlet.buffer),
                behind: behind.into_iter().map(prefix).collect(),
            }
        };
        Ok((0..).zip(sides).map(port).collect())
    }

    fn export(&self, runtime: &Runtime, registry: &Registry) -> Result<Option<Exporter>, Failure> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let exporter = runtime.block_on(Exporter::bind(address, registry.clone()));
        exporter.map(Some).map_err(Failure::of)
    }
}

/// Forwards frames until a signal arrives, and reports changes of the agent's state.
fn pass(cable: &mut AgentBridge, mut channel: AgentChannel, stop: &Stop) -> Result<(), Failure> {
    let mut told = StateReporter::new(channel.state());
    while !stop.should_stop() {
        let step = cable.step(STEP, |now, agent| channel.exchange(now, agent));
        step.map_err(Failure::logged)?;
        told.report_change();
        for name in cable.take_gone() {
            tracing::warn!("the interface {name} is gone: nothing passes any more");
        }
        if !cable.is_whole() {
            let reason = "a cable needs both its interfaces";
            return Err(Failure::logged(reason));
        }
    }
    Ok(())
}

/// Reports changes of the agent's connection to its controller.
struct StateReporter {
    state: watch::Receiver<AgentState>,
    /// Whether the last attempt failed; repeated failures are not reported.
    failing: bool,
}

impl StateReporter {
    fn new(state: watch::Receiver<AgentState>) -> Self {
        Self {
            state,
            failing: false,
        }
    }

    fn report_change(&mut self) {
        // The sender is dropped only with the runtime.
        if !self.state.has_changed().unwrap_or(false) {
            return;
        }
        match &*self.state.borrow_and_update() {
            AgentState::Attached {
                controller,
                leader_epoch,
            } => {
                self.failing = false;
                let (name, term) = (&leader_epoch.name, leader_epoch.term);
                let said = format!("obeys the controller {name} with term {term} at {controller}");
                tracing::info!("{said}");
                service_manager::status(&said);
            }
            AgentState::Failed(reason) if !self.failing => {
                self.failing = true;
                let said =
                    format!("no controller: {reason}; everything passes, and it goes on trying");
                tracing::warn!("{said}");
                service_manager::status(&said);
            }
            AgentState::Failed(_) | AgentState::Searching => {}
        }
    }
}
