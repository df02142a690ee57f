//! Tests of addresses and classes, and of the cost of a match.

use std::net::{IpAddr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

#[test]
fn ipv4_mapped_addresses_match_ipv4_prefixes() {
    let prefix: Prefix = "10.0.0.0/8".parse().unwrap();
    assert!(prefix.contains("::ffff:10.1.2.3".parse().unwrap()));
    let all: Prefix = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("255.1.2.3".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
    let all: Prefix = "::/0".parse().unwrap();
    assert!(all.contains("::1".parse().unwrap()) && !all.contains("10.0.0.1".parse().unwrap()));
}

#[test]
fn code_points_have_the_names_of_the_rfcs() {
    for (text, number) in [("ef", 46), ("AF41", 34), ("cs0", 0), ("63", 63)] {
        let dscp: Dscp = text.parse().unwrap();
        assert_eq!(dscp, Dscp::of_traffic_class(number << 2), "{text}");
    }
    assert!("64".parse::<Dscp>().is_err());
}

#[test]
fn a_policy_controls_where_a_rule_that_controls_can_match() {
    let control = Some(TconControl {
        congestion: "cubic".parse().unwrap(),
        ecn: None,
        buffer: weir_units::ByteSize::from_mib(1),
    });
    let at = |interface: &str| PolicyRule {
        interfaces: vec![interface.parse().unwrap()],
        ..PolicyRule::new(control.clone())
    };
    let interfaces = ["eth0".to_owned()];
    let controls = |rules: &[PolicyRule]| {
        let rules = rules.to_vec();
        Policy { rules }.controls_at(&interfaces)
    };
    let pass = PolicyRule {
        line: 3,
        ..PolicyRule::new(None)
    };
    let web = PolicyRule {
        to_ports: vec!["80".parse().unwrap()],
        ..PolicyRule::new(None)
    };
    assert!(!controls(&[]) && !controls(std::slice::from_ref(&pass)));
    assert!(!controls(&[at("wlan*")]) && controls(&[at("eth*")]));
    assert!(controls(&[web, at("eth0")]), "not all is passed before");
    assert!(!controls(&[pass.clone(), at("eth0")]));
    assert!(controls(&[at("eth0"), pass]));
}

#[test]
fn a_match_allocates_no_memory() {
    let rule = |port: u16| PolicyRule {
        from: vec!["10.0.0.0/8".parse().unwrap()],
        to_ports: vec![port.to_string().parse().unwrap()],
        interfaces: vec!["eth*".parse().unwrap()],
        dscp: vec!["ef".parse().unwrap()],
        share: Share::new(1.0, 0),
        ..PolicyRule::new(None)
    };
    let policy = Policy {
        rules: (1..=1000).map(rule).collect(),
    };
    let flow = PolicyFlow {
        interface: Some("eth0"),
        dscp: "ef".parse().unwrap(),
        ..PolicyFlow::between(
            "10.1.2.3:9".parse().unwrap(),
            "192.0.2.1:1000".parse().unwrap(),
        )
    };
    let mut found = None;
    let counted = allocation_counter::measure(|| found = policy.decision(&flow));
    assert_eq!(found.map(|decision| decision.rule), policy.rules.last());
    assert_eq!(counted.count_total, 0);
}

proptest! {
    /// A prefix contains the addresses that agree with it in its bits, and parses back from its
    /// text.
    #[test]
    fn a_prefix_contains_the_addresses_that_share_its_bits(own: u128, other: u128, length in 0_u8..=128, common in 0_u32..=128) {
        let keep = |bits: u32| u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let own = own & keep(length.into());
        let other = (own & keep(common)) | (other & !keep(common));
        let prefix: Prefix = format!("{}/{length}", Ipv6Addr::from(own)).parse().unwrap();
        let address = Ipv6Addr::from(other);
        // An IPv4-mapped address is in no version 6 prefix.
        let expected = (own ^ other) & keep(length.into()) == 0 && address.to_ipv4_mapped().is_none();
        prop_assert_eq!(prefix.contains(IpAddr::V6(address)), expected);
        prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
    }
}
