//! A policy as the rules of TCon's element between two interfaces.

use std::sync::Arc;

use weir_policy::{Dscp, Group, Policy, PolicyFlow, PolicyRule, SocketOwner, first_match};
use weir_tcon::{FlowInfo, FlowPolicy, PolicyLookup};

use super::SIDES;
use crate::bypass::FastPath;

/// The rules of a policy, each with its flow policy, and the names of the two interfaces.
#[derive(Debug)]
pub(super) struct PolicyRules {
    rules: Vec<(PolicyRule, Option<FlowPolicy>)>,
    interfaces: [String; 2],
    /// The way of connections that no rule controls, if there is one.
    fast_path: Option<Arc<FastPath>>,
}

impl PolicyRules {
    pub(super) fn new(
        policy: Policy,
        interfaces: &[String; 2],
        fast_path: Option<Arc<FastPath>>,
    ) -> Self {
        let rules = policy.rules.into_iter().map(|rule| {
            let control = rule.control.as_ref();
            let treatment = control.map(|control| FlowPolicy::by(control, rule.line));
            (rule, treatment)
        });
        Self {
            rules: rules.collect(),
            interfaces: interfaces.clone(),
            fast_path,
        }
    }

    /// Returns the interface that a flow's data leave by.
    fn interface(&self, flow: &FlowInfo) -> Option<&str> {
        let [one, other] = &self.interfaces;
        let is = |port, side| port == Some(SIDES[side]);
        if is(flow.egress, 0) || is(flow.ingress, 1) {
            return Some(one);
        }
        (is(flow.egress, 1) || is(flow.ingress, 0)).then_some(other)
    }
}

impl PolicyLookup for PolicyRules {
    fn policy_for(&self, flow: &FlowInfo) -> Option<&FlowPolicy> {
        let flow = PolicyFlow {
            key: flow.key,
            interface: self.interface(flow),
            dscp: Dscp::of_traffic_class(flow.dscp << 2),
            owner: SocketOwner::UNKNOWN,
        };
        let (rule, treatment) = first_match(&self.rules, &flow)?;
        match rule.group(&flow) {
            Group::Treated => treatment.as_ref(),
            Group::Control => None,
        }
    }

    fn offload(&self, forth: &FlowInfo, back: &FlowInfo) -> bool {
        let Some(fast_path) = &self.fast_path else {
            return false;
        };
        let is_controlled = |flow| self.policy_for(flow).is_some();
        if is_controlled(forth) || is_controlled(back) {
            return false;
        }
        let from_first = [forth, back]
            .into_iter()
            .find(|flow| flow.ingress == Some(SIDES[0]));
        from_first.is_some_and(|flow| fast_path.announce(&flow.key))
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::parse_policy;
    use weir_units::ByteSize;
    use weir_wire::FlowKey;

    use super::*;

    fn info(source_port: u16, side: usize, dscp: u8) -> FlowInfo {
        FlowInfo {
            key: FlowKey {
                source_port,
                ..FlowKey::UNSPECIFIED
            },
            dscp,
            ingress: Some(SIDES[side]),
            egress: None,
        }
    }

    #[test]
    fn a_rule_matches_ports_dscp_and_the_egress_interface() {
        let text = "[[rules]]\nfrom_port = 22\npass = true\n\
                    [[rules]]\ninterface = \"wan*\"\ndscp = \"ef\"\ncongestion = \"dctcp\"\n\
                    [[rules]]\ninterface = \"wan*\"\ncongestion = \"bbr\"\nbuffer = \"1MB\"\necn = true\n";
        let policy = parse_policy("test", text).unwrap();
        let rules = PolicyRules::new(policy, &["lan0".to_owned(), "wan0".to_owned()], None);
        assert_eq!(rules.policy_for(&info(22, 0, 0)), None);
        assert_eq!(rules.policy_for(&info(80, 1, 0)), None, "it leaves by lan0");
        let found = rules.policy_for(&info(80, 0, 46)).unwrap();
        assert_eq!(
            (found.congestion.name(), found.rule, found.ecn),
            ("dctcp", 4, true)
        );
        let found = rules.policy_for(&info(80, 0, 0)).unwrap();
        let expected = (8, true, ByteSize::from_bytes(1_000_000));
        assert_eq!((found.rule, found.ecn, found.buffer), expected);
        let back = FlowInfo {
            ingress: None,
            egress: Some(SIDES[1]),
            ..info(80, 0, 0)
        };
        assert_eq!(rules.policy_for(&back).map(|found| found.rule), Some(8));
    }
}
