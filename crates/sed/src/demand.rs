//! Sizes and deadlines of flows. Applications register them; rules set them for applications that
//! cannot be changed.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

/// The size and the deadline of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The bytes to carry.
    pub size: ByteSize,
    /// The time for it, from its SYN on.
    pub within: Duration,
}

/// A rule: the demand of all flows that match. An empty list matches everything; otherwise one entry
/// must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemandRule {
    /// Prefixes of the sender's address: address and length in bits.
    pub sources: Vec<(IpAddr, u8)>,
    /// Prefixes of the receiver's address.
    pub destinations: Vec<(IpAddr, u8)>,
    /// Ports of the sender.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Ports of the receiver.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// The demand of matching flows; `None` for no deadline.
    pub demand: Option<Demand>,
}

/// A pattern of flows, for callers that do not know all ports of a flow yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowPattern {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The sender's port; `None` for any.
    pub source_port: Option<u16>,
    /// The receiver's port; `None` for any.
    pub destination_port: Option<u16>,
    /// The protocol number.
    pub protocol: u8,
}

impl From<FlowKey> for FlowPattern {
    fn from(flow: FlowKey) -> Self {
        Self {
            source: flow.source,
            destination: flow.destination,
            source_port: Some(flow.source_port),
            destination_port: Some(flow.destination_port),
            protocol: flow.protocol,
        }
    }
}

impl FlowPattern {
    /// Returns the flow, if the pattern matches one flow only.
    pub fn flow(&self) -> Option<FlowKey> {
        Some(FlowKey {
            source: self.source,
            destination: self.destination,
            source_port: self.source_port?,
            destination_port: self.destination_port?,
            protocol: self.protocol,
        })
    }

    /// Returns the patterns that match a flow, the narrowest first.
    fn around(flow: &FlowKey) -> [Self; 4] {
        let exact = Self::from(*flow);
        let (source_port, destination_port) = (None, None);
        [
            exact,
            Self {
                source_port,
                ..exact
            },
            Self {
                destination_port,
                ..exact
            },
            Self {
                source_port,
                destination_port,
                ..exact
            },
        ]
    }
}

/// Why a demand is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// The size is zero.
    #[error("a flow with a deadline has a size of at least one byte")]
    NoSize,
    /// The size is beyond any link.
    #[error("a size of {size} is more than any flow carries; the largest is {largest}")]
    TooLarge {
        /// The requested size.
        size: ByteSize,
        /// [`DemandTable::LARGEST`].
        largest: ByteSize,
    },
    /// The time is zero.
    #[error("a deadline lies in the future")]
    NoTime,
    /// The caller is neither end of the flow.
    #[error("{client} may register its own flows only")]
    NotOwner {
        /// The caller's address.
        client: IpAddr,
    },
    /// The client has reached its limit of registrations.
    #[error("{client} has registered {limit} flows that have not ended, which is the limit")]
    TooMany {
        /// The client's address.
        client: IpAddr,
        /// The limit.
        limit: usize,
    },
    /// All clients together have reached the limit.
    #[error("{0} flows that have not ended are registered, which is the limit")]
    Full(usize),
}

/// A client's registration.
#[derive(Clone, Copy, Debug)]
struct Registration {
    client: IpAddr,
    demand: Demand,
    /// Whether no flow has used it since the last check.
    is_unused: bool,
}

/// All known demands.
#[derive(Debug)]
pub struct DemandTable {
    rules: Vec<DemandRule>,
    registered: FxHashMap<FlowPattern, Registration>,
    /// How many of these match more than one flow.
    wide: usize,
    per_client: FxHashMap<IpAddr, usize>,
    limit: usize,
}

impl Demand {
    /// Returns the demand if it is valid.
    ///
    /// # Errors
    /// The size is zero or too large, or the time is zero.
    pub fn check(self) -> Result<Self, DemandError> {
        match self {
            Self { size, .. } if size.is_zero() => Err(DemandError::NoSize),
            Self { within, .. } if within.is_zero() => Err(DemandError::NoTime),
            Self { size, .. } if size > DemandTable::LARGEST => Err(DemandError::TooLarge {
                size,
                largest: DemandTable::LARGEST,
            }),
            demand => Ok(demand),
        }
    }
}

impl DemandRule {
    fn matches(&self, flow: &FlowKey) -> bool {
        let within = |prefixes: &[(IpAddr, u8)], address| {
            let holds = |(network, bits): &(IpAddr, u8)| shares_prefix(*network, address, *bits);
            prefixes.is_empty() || prefixes.iter().any(holds)
        };
        let among = |ports: &[RangeInclusive<u16>], port| {
            ports.is_empty() || ports.iter().any(|ports| ports.contains(&port))
        };
        within(&self.sources, flow.source)
            && within(&self.destinations, flow.destination)
            && among(&self.source_ports, flow.source_port)
            && among(&self.destination_ports, flow.destination_port)
    }
}

/// Whether two addresses share their first `bits` bits.
pub fn shares_prefix(network: IpAddr, address: IpAddr, bits: u8) -> bool {
    let (one, other, length) = match (network, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(one.to_bits()), u128::from(other.to_bits()), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::saturating_sub(length, u32::from(bits));
    (one ^ other).checked_shr(rest).unwrap_or(0) == 0
}

impl DemandTable {
    /// The largest size of a flow, 1 EB: at 100 Tbit/s it takes a day.
    pub const LARGEST: ByteSize = ByteSize::from_bytes(1_000_000_000_000_000_000);

    /// Creates a table with these rules, of which the first that matches a flow applies. A client may
    /// have `limit` flows registered.
    pub fn new(rules: Vec<DemandRule>, limit: usize) -> Self {
        Self {
            rules,
            registered: FxHashMap::default(),
            wide: 0,
            per_client: FxHashMap::default(),
            limit,
        }
    }

    /// Replaces the rules, for flows that begin from now on.
    pub fn set_rules(&mut self, rules: Vec<DemandRule>) {
        self.rules = rules;
    }

    /// The limit of all registrations together.
    pub const MOST: usize = 1_000_000;

    /// Registers the demand of one of the client's own flows, before it opens, or of all flows that
    /// match a [`FlowPattern`]. A second registration of the same replaces the first.
    ///
    /// # Errors
    /// The demand is invalid, the flow belongs to another host, or there are too many registrations.
    pub fn register(
        &mut self,
        client: IpAddr,
        flows: impl Into<FlowPattern>,
        demand: Demand,
    ) -> Result<(), DemandError> {
        let demand = demand.check()?;
        let flows = flows.into();
        if client != flows.source && client != flows.destination {
            return Err(DemandError::NotOwner { client });
        }
        let earlier = self.registered.get(&flows).map(|earlier| earlier.client);
        let count = self.per_client.get(&client).copied().unwrap_or(0);
        if earlier != Some(client) && count >= self.limit {
            return Err(DemandError::TooMany {
                client,
                limit: self.limit,
            });
        }
        if earlier.is_none() && self.registered.len() >= Self::MOST {
            return Err(DemandError::Full(Self::MOST));
        }
        self.remove(&flows);
        let registration = Registration {
            client,
            demand,
            is_unused: false,
        };
        self.registered.insert(flows, registration);
        self.wide += usize::from(flows.flow().is_none());
        *self.per_client.entry(client).or_default() += 1;
        Ok(())
    }

    /// Removes a registration that `client`, or the other end, has made. Returns whether there was one.
    ///
    /// # Errors
    /// The flow belongs to another host.
    pub fn withdraw(
        &mut self,
        client: IpAddr,
        flows: impl Into<FlowPattern>,
    ) -> Result<bool, DemandError> {
        let flows = flows.into();
        if client == flows.source || client == flows.destination {
            Ok(self.remove(&flows))
        } else {
            Err(DemandError::NotOwner { client })
        }
    }

    /// Removes the registration of a flow that is over.
    pub fn forget(&mut self, flow: &FlowKey) {
        self.remove(&FlowPattern::from(*flow));
    }

    fn remove(&mut self, flows: &FlowPattern) -> bool {
        let Some(Registration { client, .. }) = self.registered.remove(flows) else {
            return false;
        };
        self.wide -= usize::from(flows.flow().is_none());
        if let Some(count) = self.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&client);
            }
        }
        true
    }

    /// Returns a flow's demand: from the narrowest registration, or else from the first rule that
    /// matches.
    pub fn of(&self, flow: &FlowKey) -> Option<Demand> {
        let (_, registration) = self.registration(flow).unzip();
        if let Some(registration) = registration {
            return Some(registration.demand);
        }
        let rule = self.rules.iter().find(|rule| rule.matches(flow))?;
        rule.demand
    }

    fn registration(&self, flow: &FlowKey) -> Option<(FlowPattern, &Registration)> {
        let patterns = match self.wide {
            0 => 1,
            _ => 4,
        };
        let mut around = FlowPattern::around(flow).into_iter().take(patterns);
        around.find_map(|pattern| Some((pattern, self.registered.get(&pattern)?)))
    }

    /// Returns the demand of a flow that begins, and marks its registration as used.
    pub(crate) fn demand_for_new(&mut self, flow: &FlowKey) -> Option<Demand> {
        let pattern = self.registration(flow).map(|(pattern, _)| pattern);
        if let Some(registration) = pattern.and_then(|pattern| self.registered.get_mut(&pattern)) {
            registration.is_unused = false;
        }
        self.of(flow)
    }

    /// Removes registrations that were unused since the last call: their flows are not open, and were
    /// not opened or registered again since. Returns how many.
    pub(crate) fn forget_unused(&mut self, is_open: impl Fn(&FlowKey) -> bool) -> usize {
        let unused: Vec<_> = self
            .registered
            .iter_mut()
            .filter_map(|(flows, registration)| {
                let is_used = flows.flow().is_some_and(|flow| is_open(&flow));
                let was_unused = std::mem::replace(&mut registration.is_unused, !is_used);
                (was_unused && !is_used).then_some(*flows)
            })
            .collect();
        for flows in &unused {
            self.remove(flows);
        }
        unused.len()
    }

    /// Returns the number of registrations.
    pub fn registered(&self) -> usize {
        self.registered.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> FlowKey {
        FlowKey {
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 1, 2]),
            source_port: port,
            destination_port: 80,
            protocol: FlowKey::TCP,
        }
    }

    fn demand(size: u64, micros: u64) -> Demand {
        Demand {
            size: ByteSize::from_bytes(size),
            within: Duration::from_micros(micros),
        }
    }

    #[test]
    fn invalid_demands_are_refused() {
        let mut demands = DemandTable::new(Vec::new(), 2);
        let client = flow(1).source;
        let refused = |demands: &mut DemandTable, demand| {
            demands.register(client, flow(1), demand).unwrap_err()
        };
        assert_eq!(refused(&mut demands, demand(0, 5)), DemandError::NoSize);
        assert_eq!(refused(&mut demands, demand(5, 0)), DemandError::NoTime);
        let huge = refused(&mut demands, demand(1 << 63, 5));
        assert!(matches!(huge, DemandError::TooLarge { .. }), "{huge}");
        let stranger = IpAddr::from([10, 0, 0, 7]);
        let foreign = demands.register(stranger, flow(1), demand(5, 5));
        assert_eq!(foreign, Err(DemandError::NotOwner { client: stranger }));
        assert_eq!(demands.registered(), 0);
    }

    #[test]
    fn a_client_has_a_limit_which_ended_flows_do_not_count_towards() {
        let mut demands = DemandTable::new(Vec::new(), 2);
        let client = flow(1).source;
        for port in [1, 2, 2, 1] {
            assert_eq!(demands.register(client, flow(port), demand(5, 5)), Ok(()));
        }
        let refused = demands.register(client, flow(3), demand(5, 5));
        assert_eq!(refused, Err(DemandError::TooMany { client, limit: 2 }));
        demands.forget(&flow(2));
        demands.forget(&flow(2));
        assert_eq!(demands.register(client, flow(3), demand(5, 5)), Ok(()));
        // Another client still has room: the receiver of the same flows.
        assert_eq!(
            demands.register(flow(1).destination, flow(4), demand(5, 5)),
            Ok(())
        );
    }

    #[test]
    fn a_registration_precedes_the_first_matching_rule() {
        let rule = |bits, source_ports, demand| DemandRule {
            destinations: vec![(IpAddr::from([10, 0, 1, 0]), bits)],
            source_ports,
            demand,
            ..DemandRule::default()
        };
        let rules = vec![
            rule(32, vec![], Some(demand(1, 1))),
            rule(24, vec![9..=9, 5..=6], None),
            rule(24, vec![], Some(demand(2, 2))),
        ];
        let mut demands = DemandTable::new(rules, 10);
        assert_eq!(demands.of(&flow(4)), Some(demand(2, 2)));
        assert_eq!(demands.of(&flow(5)), None);
        assert_eq!(demands.of(&flow(4).reversed()), None);
        let client = flow(5).source;
        demands.register(client, flow(5), demand(3, 3)).unwrap();
        assert_eq!(demands.of(&flow(5)), Some(demand(3, 3)));
        demands.set_rules(Vec::new());
        assert_eq!(demands.of(&flow(5)), Some(demand(3, 3)));
        assert_eq!(demands.of(&flow(4)), None);
    }

    #[test]
    fn the_narrowest_matching_pattern_applies() {
        let mut demands = DemandTable::new(Vec::new(), 10);
        let client = flow(1).source;
        let any = FlowPattern {
            source_port: None,
            destination_port: None,
            ..FlowPattern::from(flow(1))
        };
        let to_port = FlowPattern {
            source_port: None,
            ..FlowPattern::from(flow(1))
        };
        demands.register(client, any, demand(1, 1)).unwrap();
        demands.register(client, to_port, demand(2, 2)).unwrap();
        demands.register(client, flow(1), demand(3, 3)).unwrap();
        assert_eq!(demands.of(&flow(1)), Some(demand(3, 3)));
        demands.forget(&flow(1));
        // Flows end, patterns stay.
        assert_eq!(demands.of(&flow(1)), Some(demand(2, 2)));
        demands.forget(&flow(1));
        assert_eq!(demands.of(&flow(7)), Some(demand(2, 2)));
        assert_eq!(demands.withdraw(client, to_port), Ok(true));
        assert_eq!(demands.of(&flow(7)), Some(demand(1, 1)));
        assert_eq!(demands.of(&flow(7).reversed()), None);
        let stranger = IpAddr::from([1, 2, 3, 4]);
        assert_eq!(
            demands.withdraw(stranger, any),
            Err(DemandError::NotOwner { client: stranger })
        );
    }

    #[test]
    fn unused_registrations_are_forgotten_at_the_second_check() {
        let mut demands = DemandTable::new(Vec::new(), 10);
        let client = flow(1).source;
        for port in [1, 2, 3] {
            demands.register(client, flow(port), demand(1, 1)).unwrap();
        }
        let pattern = FlowPattern {
            source_port: None,
            ..FlowPattern::from(flow(1))
        };
        demands.register(client, pattern, demand(1, 1)).unwrap();
        let is_open = |open: &FlowKey| *open == flow(1);
        assert_eq!(demands.forget_unused(is_open), 0);
        demands.register(client, flow(2), demand(1, 1)).unwrap();
        demands.demand_for_new(&flow(9));
        assert_eq!(demands.forget_unused(is_open), 1);
        assert_eq!(demands.registered(), 3);
        assert_eq!(demands.forget_unused(is_open), 2);
        assert_eq!(demands.of(&flow(1)), Some(demand(1, 1)));
    }

    #[test]
    fn prefixes() {
        let address = IpAddr::from([10, 0, 1, 2]);
        assert!(shares_prefix(IpAddr::from([99, 9, 9, 9]), address, 0));
        assert!(shares_prefix(IpAddr::from([10, 0, 1, 2]), address, 32));
        assert!(!shares_prefix(IpAddr::from([10, 0, 1, 3]), address, 32));
        assert!(shares_prefix(IpAddr::from([10, 0, 1, 3]), address, 31));
        let six = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
        assert!(!shares_prefix(six, address, 0));
        assert!(shares_prefix(
            six,
            IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, 1]),
            96
        ));
    }
}
