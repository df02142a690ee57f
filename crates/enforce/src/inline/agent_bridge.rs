//! SED's agent between two interfaces, with a queue in front of each, which it monitors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use weir_fabric::{ETHERNET_FRAMING, EgressPort, Faults, Link, Queue, Rule};
use weir_metrics::Registry;
use weir_sed::{Agent, AgentConfig};
use weir_units::{ByteSize, Duration, Rate, Time};

use super::agent_metrics::{AgentCounts, AgentMetrics, InterfaceCounts};
use super::{AttachError, Inline, InterfacePair};
use crate::bypass::{Arming, BypassError};
use crate::segment::Segment;

/// The interval at which interfaces are checked and metrics updated.
const ROUND: Duration = Duration::from_millis(250);

/// The egress queue in front of an interface, and its drain rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxQueue {
    /// The rate, Ethernet's framing counted. If it is below the rate of the interface's own link, the queue
    /// builds up here, where the agent sees it.
    pub rate: Rate,
    /// The size of the queue: packets beyond it are dropped.
    pub buffer: ByteSize,
    /// The queue length above which ECN-capable packets are marked, if any are.
    pub ecn_threshold: Option<ByteSize>,
}

impl TxQueue {
    fn egress_port(self) -> EgressPort<Segment> {
        let link = Link::new(self.rate, Duration::ZERO).with_framing(ETHERNET_FRAMING);
        // Nothing here is random.
        let mut rules = vec![Rule::tail_drop(self.buffer)];
        rules.extend(self.ecn_threshold.map(Rule::mark_above));
        let queue = Queue::new(rules, 0);
        EgressPort::new(queue, link, Faults::none())
    }
}

/// A cable between two interfaces with queues, and SED's agent before them.
///
/// A frame received at one interface leaves by the other through a queue with a given rate. The owner of
/// the channel to a controller exchanges reports and orders with the agent in [`Self::step`].
#[derive(Debug)]
pub struct AgentBridge {
    cable: Inline,
    ends: InterfacePair,
    wake: Waker,
    metrics: Option<AgentMetrics>,
    looked: Time,
}

/// Wakes a sleeping [`AgentBridge`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Has [`AgentBridge::step`] call `exchange`.
    pub fn wake(&self) {
        // A write that overflows the counter fails, but the counter wakes the sleeper anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    fn take(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AgentBridge {
    /// Joins two interfaces of the calling thread's network namespace, and sets them promiscuous. Frames
    /// that leave by each wait in the queue of its `outlets`. `seed` keeps senders from choosing the slots
    /// of their flows in the agent's table.
    ///
    /// # Errors
    /// [`AttachError`]: an interface that does not exist, carries no Ethernet frames, is the other one or
    /// in use; no permission.
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
            cable: Inline::with_egress_ports(ports, outlets.map(TxQueue::egress_port), agent),
            ends,
            wake,
            metrics: None,
            looked: Time::ZERO,
        })
    }

    /// Makes the cable fail open: see [`bypass`](crate::bypass). Call [`Self::step`] without delay from now
    /// on.
    ///
    /// # Errors
    /// See [`BypassError`]. The cable then fails closed, as without the call, but what a killed process has
    /// left may still forward frames: see [`Self::remove_bypass`].
    pub fn arm_bypass(&mut self) -> Result<Arming, BypassError> {
        self.cable.arm_bypass(0)
    }

    /// Removes what a killed process may have left, which would forward each frame a second time.
    ///
    /// # Errors
    /// See [`BypassError`].
    pub fn remove_bypass(&self) -> Result<(), BypassError> {
        self.cable.remove_bypass()
    }

    /// Returns a handle that wakes it.
    pub fn waker(&self) -> Waker {
        self.wake.clone()
    }

    /// Registers its metrics in a registry.
    pub fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(AgentMetrics::register(registry));
    }

    /// Forwards frames for a duration. `exchange` is called after each event: it takes the agent's reports,
    /// passes orders to the agent, and returns whether there were any.
    ///
    /// # Errors
    /// The system's error while waiting.
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
                // Orders are due at once; the next turn carries them out.
                exchange(now, agent);
            }
            if now >= until {
                self.check_interfaces(now);
                return Ok(());
            }
        }
    }

    fn check_interfaces(&mut self, now: Time) {
        if now.since(self.looked) < ROUND {
            return;
        }
        self.looked = now;
        self.ends.look_at(&self.cable.ports);
        if let Some(metrics) = &self.metrics {
            let agent: Option<&Agent<Segment>> = self.cable.element();
            let counted = AgentCounts {
                agent: agent.map(Agent::counters).unwrap_or_default(),
                bypass: self.cable.bypass_counts(),
            };
            let queues = self.cable.switch.ports().iter().map(EgressPort::queue);
            let interfaces = { self.ends.names.iter().zip(queues) }
                .map(|(name, queue)| InterfaceCounts {
                    name: name.clone(),
                    waiting: queue.backlog(),
                    counters: queue.counters(),
                })
                .collect();
            metrics.set(&counted, interfaces, self.cable.frames_of(&self.ends, None));
        }
    }

    /// Returns the names of interfaces that have disappeared since the last call.
    pub fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ends.gone)
    }

    /// Returns whether both interfaces exist.
    pub fn is_whole(&self) -> bool {
        self.ends.exist
    }
}
