//! What flows have to carry and by when, which only applications know: they register it, or rules say it
//! for those that nobody can change.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

/// What a flow has to carry and by when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// How much.
    pub size: ByteSize,
    /// How long it has from its SYN on.
    pub within: Duration,
}

/// A rule: what flows demand that are alike. What it leaves open matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Addresses of the sender: those that share this many bits with this one.
    pub source: Option<(IpAddr, u8)>,
    /// Addresses of the receiver.
    pub destination: Option<(IpAddr, u8)>,
    /// Ports of the sender.
    pub source_ports: RangeInclusive<u16>,
    /// Ports of the receiver.
    pub destination_ports: RangeInclusive<u16>,
    /// What they demand; without, they have no deadline.
    pub demand: Option<Demand>,
}

/// Why a demand is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// There is nothing to carry.
    #[error("a flow with a deadline has a size of at least one byte")]
    NoSize,
    /// There is no link for it.
    #[error("a size of {size} is more than any flow carries; the largest is {largest}")]
    TooLarge {
        /// What was asked for.
        size: ByteSize,
        /// [`Demands::LARGEST`].
        largest: ByteSize,
    },
    /// It is over before it has begun.
    #[error("a deadline lies in the future")]
    NoTime,
    /// Whoever asks is neither end of the flow.
    #[error("{client} may register its own flows only")]
    Foreign {
        /// Who asks.
        client: IpAddr,
    },
    /// This client has registered enough.
    #[error("{client} has registered {limit} flows that have not ended, which is the limit")]
    TooMany {
        /// Who asks.
        client: IpAddr,
        /// How many it may have.
        limit: usize,
    },
}

/// All demands that are known.
#[derive(Debug)]
pub struct Demands {
    rules: Vec<Rule>,
    registered: FxHashMap<FlowKey, (IpAddr, Demand)>,
    per_client: FxHashMap<IpAddr, usize>,
    limit: usize,
}

impl Demand {
    /// Whether it can be meant.
    ///
    /// # Errors
    /// There is no size, or no time, or too much of it.
    pub fn check(self) -> Result<Self, DemandError> {
        match self {
            Self { size, .. } if size.is_zero() => Err(DemandError::NoSize),
            Self { within, .. } if within.is_zero() => Err(DemandError::NoTime),
            Self { size, .. } if size > Demands::LARGEST => Err(DemandError::TooLarge {
                size,
                largest: Demands::LARGEST,
            }),
            demand => Ok(demand),
        }
    }
}

impl Rule {
    fn matches(&self, flow: &FlowKey) -> bool {
        let within = |prefix: &Option<(IpAddr, u8)>, address| {
            prefix.is_none_or(|(network, bits)| shares(network, address, bits))
        };
        within(&self.source, flow.source)
            && within(&self.destination, flow.destination)
            && self.source_ports.contains(&flow.source_port)
            && self.destination_ports.contains(&flow.destination_port)
    }
}

/// Whether two addresses begin with the same bits.
fn shares(network: IpAddr, address: IpAddr, bits: u8) -> bool {
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

impl Demands {
    /// The largest size of a flow, 1 EB: at 100 Tbit/s it takes a day.
    pub const LARGEST: ByteSize = ByteSize::from_bytes(1_000_000_000_000_000_000);

    /// These rules, of which the first that matches a flow holds, and nothing registered. A client may
    /// have `limit` flows registered.
    pub fn new(rules: Vec<Rule>, limit: usize) -> Self {
        Self {
            rules,
            registered: FxHashMap::default(),
            per_client: FxHashMap::default(),
            limit,
        }
    }

    /// `client` says what a flow of its own demands, which it is about to open. A second registration
    /// takes the place of the first.
    ///
    /// # Errors
    /// The demand makes no sense, the flow is somebody else's, or the client has too many.
    pub fn register(
        &mut self,
        client: IpAddr,
        flow: FlowKey,
        demand: Demand,
    ) -> Result<(), DemandError> {
        let demand = demand.check()?;
        if client != flow.source && client != flow.destination {
            return Err(DemandError::Foreign { client });
        }
        let earlier = self.registered.get(&flow).map(|(client, _)| *client);
        let count = self.per_client.get(&client).copied().unwrap_or(0);
        if earlier != Some(client) && count >= self.limit {
            return Err(DemandError::TooMany {
                client,
                limit: self.limit,
            });
        }
        self.forget(&flow);
        self.registered.insert(flow, (client, demand));
        *self.per_client.entry(client).or_default() += 1;
        Ok(())
    }

    /// The flow is over.
    pub fn forget(&mut self, flow: &FlowKey) {
        let Some((client, _)) = self.registered.remove(flow) else {
            return;
        };
        if let Some(count) = self.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&client);
            }
        }
    }

    /// What a flow demands: as registered, or by the first rule that matches it.
    pub fn of(&self, flow: &FlowKey) -> Option<Demand> {
        if let Some((_, demand)) = self.registered.get(flow) {
            return Some(*demand);
        }
        let rule = self.rules.iter().find(|rule| rule.matches(flow))?;
        rule.demand
    }

    /// How many flows are registered.
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
    fn senseless_demands_are_refused() {
        let mut demands = Demands::new(Vec::new(), 2);
        let client = flow(1).source;
        let refused =
            |demands: &mut Demands, demand| demands.register(client, flow(1), demand).unwrap_err();
        assert_eq!(refused(&mut demands, demand(0, 5)), DemandError::NoSize);
        assert_eq!(refused(&mut demands, demand(5, 0)), DemandError::NoTime);
        let huge = refused(&mut demands, demand(1 << 63, 5));
        assert!(matches!(huge, DemandError::TooLarge { .. }), "{huge}");
        let stranger = IpAddr::from([10, 0, 0, 7]);
        let foreign = demands.register(stranger, flow(1), demand(5, 5));
        assert_eq!(foreign, Err(DemandError::Foreign { client: stranger }));
        assert_eq!(demands.registered(), 0);
    }

    #[test]
    fn a_client_has_a_limit_which_ended_flows_do_not_count_towards() {
        let mut demands = Demands::new(Vec::new(), 2);
        let client = flow(1).source;
        for port in [1, 2, 2, 1] {
            assert_eq!(demands.register(client, flow(port), demand(5, 5)), Ok(()));
        }
        let refused = demands.register(client, flow(3), demand(5, 5));
        assert_eq!(refused, Err(DemandError::TooMany { client, limit: 2 }));
        demands.forget(&flow(2));
        demands.forget(&flow(2));
        assert_eq!(demands.register(client, flow(3), demand(5, 5)), Ok(()));
        // Somebody else has room still: the receiver of the same flows.
        assert_eq!(
            demands.register(flow(1).destination, flow(4), demand(5, 5)),
            Ok(())
        );
    }

    #[test]
    fn the_first_rule_that_matches_holds_and_a_registration_before_it() {
        let rule = |bits, ports, demand| Rule {
            source: None,
            destination: Some((IpAddr::from([10, 0, 1, 0]), bits)),
            source_ports: ports,
            destination_ports: 0..=u16::MAX,
            demand,
        };
        let rules = vec![
            rule(32, 0..=u16::MAX, Some(demand(1, 1))),
            rule(24, 5..=6, None),
            rule(24, 0..=u16::MAX, Some(demand(2, 2))),
        ];
        let mut demands = Demands::new(rules, 10);
        assert_eq!(demands.of(&flow(4)), Some(demand(2, 2)));
        assert_eq!(demands.of(&flow(5)), None);
        assert_eq!(demands.of(&flow(4).reversed()), None);
        let client = flow(5).source;
        demands.register(client, flow(5), demand(3, 3)).unwrap();
        assert_eq!(demands.of(&flow(5)), Some(demand(3, 3)));
    }

    #[test]
    fn prefixes() {
        let address = IpAddr::from([10, 0, 1, 2]);
        assert!(shares(IpAddr::from([99, 9, 9, 9]), address, 0));
        assert!(shares(IpAddr::from([10, 0, 1, 2]), address, 32));
        assert!(!shares(IpAddr::from([10, 0, 1, 3]), address, 32));
        assert!(shares(IpAddr::from([10, 0, 1, 3]), address, 31));
        let six = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
        assert!(!shares(six, address, 0));
        assert!(shares(six, IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, 1]), 96));
    }
}
