//! Chooses the congestion controller of an endpoint's paths by policy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use weir_congestion::{Context, Controller};
use weir_policy::{Dscp, PolicyFlow, PolicyRule, PolicySource, RuleFinding};
use weir_quic::{Congestion, PathEndpoints, TransportConfig};
use weir_units::ByteSize;

use crate::socket::BindAddress;

/// The default of `buffer`, which a file cannot be told from.
const DEFAULT_BUFFER: ByteSize = ByteSize::from_mib(4);

/// Checks a policy's rule for an endpoint that is bound to these interfaces; none if it is bound to
/// addresses only.
pub fn check_policy_rule(rule: &PolicyRule, bound: &[String]) -> Vec<RuleFinding> {
    let mut findings = rule.needs_sockets();
    findings.extend(rule.needs_no_records());
    if bound.is_empty() && !rule.interfaces.is_empty() {
        findings.push(RuleFinding::warning(
            "interface",
            "the rule never matches: the endpoint is bound to no interface",
            "name addresses by `from`",
        ));
    }
    findings.extend(rule.unmatched_interfaces(bound));
    if !rule.dscp.is_empty() && !rule.dscp.contains(&Dscp::DEFAULT) {
        findings.push(RuleFinding::warning(
            "dscp",
            "the rule never matches: endpoints send packets of class 0",
            "leave it out, or name class 0 too",
        ));
    }
    if let Some(control) = &rule.control {
        if control.ecn.is_some() {
            findings.push(RuleFinding::warning(
                "ecn",
                "it has no effect: it is for TCP, and DCQUIC counts marks by itself",
                "leave it out",
            ));
        }
        if control.buffer != DEFAULT_BUFFER {
            findings.push(RuleFinding::warning(
                "buffer",
                "it has no effect: it is for TCP",
                "leave it out",
            ));
        }
    }
    findings
}

/// Looks up the rule for the packets of a path.
#[derive(Debug)]
pub(crate) struct PolicyResolver {
    policy: Arc<dyn PolicySource>,
    /// The endpoint's addresses, each with the interface that it is bound to.
    bound: Vec<(IpAddr, Option<String>)>,
}

impl PolicyResolver {
    pub(crate) fn new(policy: Arc<dyn PolicySource>, bind_addresses: &[BindAddress]) -> Self {
        let bound = |bind_address: &BindAddress| {
            (
                bind_address.address.ip().to_canonical(),
                bind_address.interface.clone(),
            )
        };
        Self {
            policy,
            bound: bind_addresses.iter().map(bound).collect(),
        }
    }

    /// Returns the transport with this policy; paths without a rule keep the transport's own
    /// controller.
    pub(crate) fn applied_to(self, transport: &TransportConfig) -> Arc<TransportConfig> {
        let otherwise = transport.congestion.clone();
        let choose = move |ends: &PathEndpoints, context: &Context| {
            self.controller(ends, context)
                .unwrap_or_else(|| otherwise.build(ends, context))
        };
        Arc::new(TransportConfig {
            congestion: Congestion::Chosen(Arc::new(choose)),
            ..transport.clone()
        })
    }

    fn controller(&self, ends: &PathEndpoints, context: &Context) -> Option<Box<dyn Controller>> {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let remote = canonical(ends.remote);
        let nowhere = match remote {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let local = ends.local.map_or(SocketAddr::new(nowhere, 0), canonical);
        let flow = PolicyFlow {
            interface: self.interface(local.ip()),
            ..PolicyFlow::between(local, remote)
        };
        Some(self.policy.control(&flow)?.congestion.build(context))
    }

    /// Returns the interface that an address is bound to.
    fn interface(&self, local: IpAddr) -> Option<&str> {
        let exact = self.bound.iter().find(|(address, _)| *address == local);
        // Bound to all addresses of an interface.
        let any = || {
            self.bound
                .iter()
                .find(|(address, _)| address.is_unspecified())
        };
        exact.or_else(any)?.1.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::{parse_policy, parse_policy_for};

    use super::*;

    #[test]
    fn conditions_and_actions_for_tcp_are_warned_of() {
        let text = "[[rules]]\ninterface = \"eth*\"\ndscp = \"ef\"\npass = true\n\
                    [[rules]]\ndscp = [\"ef\", 0]\ncongestion = \"bbr\"\necn = true\nbuffer = \"1MB\"\n";
        let warned = |bound: &[&str]| {
            let bound: Vec<_> = bound.iter().map(ToString::to_string).collect();
            let check = |rule: &PolicyRule| check_policy_rule(rule, &bound);
            let checked = parse_policy_for("test", text, check);
            let keys = checked.warnings.iter().map(|warning| warning.key.clone());
            keys.collect::<Vec<_>>()
        };
        let [interface, dscp] = ["rules.0.interface", "rules.0.dscp"];
        let [ecn, buffer] = ["rules.1.ecn", "rules.1.buffer"];
        assert_eq!(warned(&[]), [interface, dscp, ecn, buffer]);
        assert_eq!(warned(&["eth0"]), [dscp, ecn, buffer]);
        assert_eq!(warned(&["wan0"]), [interface, dscp, ecn, buffer]);
    }

    fn name(chooser: &PolicyResolver, local: Option<&str>, remote: &str) -> &'static str {
        let ends = PathEndpoints {
            local: local.map(|address| address.parse().unwrap()),
            remote: remote.parse().unwrap(),
        };
        let context = Context {
            packet_size: weir_units::ByteSize::from_bytes(1200),
            seed: 1,
            is_paced: true,
        };
        let controller = chooser.controller(&ends, &context);
        controller.map_or("none", |controller| controller.name())
    }

    #[test]
    fn the_first_matching_rule_applies_to_a_path() {
        let policy = "[[rules]]\nto = \"10.0.0.0/8\"\npass = true\n\
                      [[rules]]\ninterface = \"wan0\"\ncongestion = \"bbr\"\n\
                      [[rules]]\nfrom_port = 443\ncongestion = \"cubic\"\n\
                      [[rules]]\nto_port = 4433\ncongestion = \"swift\"\n";
        let bind_address = |address: &str, interface: Option<&str>| BindAddress {
            address: address.parse().unwrap(),
            interface: interface.map(str::to_owned),
        };
        let bind_addresses = [
            bind_address("192.0.2.1:443", None),
            bind_address("192.0.2.2:0", Some("wan0")),
        ];
        let chooser = PolicyResolver::new(
            Arc::new(parse_policy("test", policy).unwrap()),
            &bind_addresses,
        );
        let from = |local, remote| name(&chooser, Some(local), remote);
        assert_eq!(from("192.0.2.2:5000", "10.1.2.3:4433"), "none");
        assert_eq!(from("192.0.2.2:5000", "203.0.113.7:4433"), "bbr");
        assert_eq!(from("192.0.2.1:443", "203.0.113.7:4433"), "cubic");
        assert_eq!(from("192.0.2.1:444", "[::ffff:203.0.113.7]:4433"), "swift");
        assert_eq!(from("192.0.2.1:444", "203.0.113.7:80"), "none");
        assert_eq!(name(&chooser, None, "203.0.113.7:4433"), "swift");
    }
}
