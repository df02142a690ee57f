//! SED's agent between two interfaces: a queue in front of each, which it watches.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use weir_fabric::{ETHERNET_FRAMING, EgressPort, Faults, Link, Queue, Rule};
use weir_metrics::Registry;
use weir_sed::{Agent, AgentConfig};
use weir_units::{ByteSize, Duration, Rate, Time};

use super::agent_metrics::{AgentCounts, AgentMetrics};
use super::{AttachError, Inline, InterfacePair};
use crate::segment::Segment;

/// How often interfaces are looked after, and figures brought up to date.
const ROUND: Duration = Duration::from_millis(250);

/// What is in front of an interface: the queue of what leaves by it, and how fast that is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxQueue {
    /// The rate, Ethernet's framing counted. One below that of the interface's own link has the queue here,
    /// where it is seen.
    pub rate: Rate,
    /// How much may wait: what has no room is dropped.
    pub buffer: ByteSize,
}

impl TxQueue {
    fn pipe(self) -> EgressPort<Segment> {
        let link = Link::new(self.rate, Duration::ZERO).with_framing(ETHERNET_FRAMING);
        // Nothing here is random.
        let queue = Queue::new([Rule::tail_drop(self.buffer)], 0);
        EgressPort::new(queue, link, Faults::none())
    }
}

/// A cable between two interfaces with queues, and SED's agent before them.
///
/// What comes in at one leaves by the other through a queue of a given rate. Whoever has a channel to a
/// controller carries reports and orders between the two in [`Self::step`].
#[derive(Debug)]
pub struct AgentBridge {
    cable: Inline,
    ends: InterfacePair,
    wake: Waker,
    metrics: Option<AgentMetrics>,
    looked: Time,
}

/// Ends the sleep of an [`AgentBridge`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// There is something for [`AgentBridge::step`] to exchange.
    pub fn wake(&self) {
        // What cannot be added to a count so high wakes all the same.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    fn take(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AgentBridge {
    /// Joins two interfaces of the calling thread's network namespace, which take all frames from then on,
    /// whomever they are for. What leaves by each waits in the queue of its `outlets`. `seed` keeps those who
    /// choose the flows from choosing their places in the agent's table.
    ///
    /// # Errors
    /// [`AttachError`]: an interface that is not there, carries no Ethernet frames, is the other one or in use;
    /// no permission.
    pub fn attach(
        interfaces: [&str; 2],
        outlets: [TxQueue; 2],
        config: AgentConfig,
        seed: u64,
    ) -> Result<Self, AttachError> {
        let (ends, ports) = InterfacePair::join(interfaces)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Waker(Arc::new(eventfd(0, flags).map_err(io::Error::from)?));
        let agent: Agent<Segment> = Agent::new(config, seed);
        Ok(Self {
            cable: Inline::with_pipes(ports, outlets.map(TxQueue::pipe), agent),
            ends,
            wake,
            metrics: None,
            looked: Time::ZERO,
        })
    }

    /// What ends its sleep.
    pub fn waker(&self) -> Waker {
        self.wake.clone()
    }

    /// Shows what it does in a registry too.
    pub fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(AgentMetrics::register(registry, &self.ends.names));
    }

    /// Passes frames on for a span. `exchange` is called whenever something has happened: it takes what the
    /// agent reports, hands it what it is ordered, and tells whether that was anything.
    ///
    /// # Errors
    /// What the system says of waiting.
    pub fn step(
        &mut self,
        span: Duration,
        mut exchange: impl FnMut(Time, &mut Agent<Segment>) -> bool,
    ) -> io::Result<()> {
        let until = self.cable.now() + span;
        loop {
            if self.cable.turn(self.wake.0.as_fd(), until)? {
                self.wake.take();
            }
            let now = self.cable.now();
            if let Some(agent) = self.cable.switch.element_mut() {
                // What it is ordered is due at once, which the next turn sees.
                exchange(now, agent);
            }
            if now >= until {
                self.look_around(now);
                return Ok(());
            }
        }
    }

    fn look_around(&mut self, now: Time) {
        if now.since(self.looked) < ROUND {
            return;
        }
        self.looked = now;
        self.ends.look_at(&self.cable.ports);
        if let Some(metrics) = &self.metrics {
            let agent: Option<&Agent<Segment>> = self.cable.element();
            let counted = AgentCounts {
                agent: agent.map(Agent::counters).unwrap_or_default(),
                cable: self.cable.counters,
                overrun: self.ends.overrun,
            };
            let names = self.ends.names.iter().map(String::as_str);
            let queues = self.cable.switch.ports().iter().map(EgressPort::queue);
            let queues = names.zip(queues);
            let queues = queues.map(|(name, queue)| (name, queue.backlog(), queue.counters()));
            metrics.set(&counted, queues);
        }
    }

    /// The names of interfaces that have disappeared since the last call.
    pub fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ends.gone)
    }

    /// Whether both interfaces are there.
    pub fn is_whole(&self) -> bool {
        self.ends.are_there
    }
}
