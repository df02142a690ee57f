use proptest::prelude::*;
use weir_policy::{Dscp, Group, Policy, PolicyFlow};

use super::parse_policy;

fn flow(from: &str, to: &str) -> PolicyFlow<'static> {
    PolicyFlow::between(from.parse().unwrap(), to.parse().unwrap())
}

fn policy(text: &str) -> Policy {
    parse_policy("p.toml", text).unwrap()
}

fn mistakes(text: &str) -> String {
    parse_policy("p.toml", text).unwrap_err().to_string()
}

/// Returns the line of the rule that applies.
fn line(policy: &Policy, flow: &PolicyFlow<'_>) -> Option<u32> {
    policy.decision(flow).map(|decision| decision.rule.line)
}

#[test]
fn the_first_matching_rule_applies() {
    let policy = policy(
        r#"[[rules]]
to = "10.0.0.0/8"
pass = true
[[rules]]
from = ["192.0.2.0/24", "2001:db8::/32"]
from_port = [80, "8000-8999"]
congestion = { name = "dctcp", g = 0.125 }
ecn = false
buffer = "1MB"
[[rules]]
interface = ["eth0", "veth*"]
congestion = "bbr"
[[rules]]
dscp = ["ef", 12]
to_port = 22
congestion = "cubic"
"#,
    );
    assert_eq!(line(&policy, &flow("192.0.2.1:80", "10.1.2.3:9")), Some(1));
    assert_eq!(
        line(&policy, &flow("192.0.2.1:8999", "11.0.0.1:9")),
        Some(4)
    );
    assert_eq!(line(&policy, &flow("[2001:db8::1]:80", "[::1]:9")), Some(4));
    assert_eq!(line(&policy, &flow("192.0.2.1:9000", "11.0.0.1:9")), None);
    let by = |interface| PolicyFlow {
        interface: Some(interface),
        ..flow("192.0.2.1:9000", "11.0.0.1:22")
    };
    assert_eq!(line(&policy, &by("eth0")), Some(10));
    assert_eq!(line(&policy, &by("veth12")), Some(10));
    assert_eq!(line(&policy, &by("eth01")), None);
    let marked = PolicyFlow {
        dscp: Dscp::of_traffic_class(46 << 2 | 1),
        ..by("eth1")
    };
    assert_eq!(line(&policy, &marked), Some(13));
    assert!(policy.rules[0].control.is_none());
    let control = policy.rules[1].control.as_ref().unwrap();
    assert_eq!(control.congestion.to_string(), "dctcp,g=0.125");
    assert_eq!(control.ecn, Some(false));
}

#[test]
fn an_explanation_lists_why_rules_do_not_match() {
    let policy = policy(
        "[[rules]]\nfrom = \"10.0.0.0/8\"\npass = true\n\
         [[rules]]\nto_port = [22, \"80-90\"]\npass = true\n\
         [[rules]]\ninterface = \"eth0\"\npass = true\n",
    );
    let explanation = policy.explain(&flow("192.0.2.1:1", "192.0.2.2:443"));
    assert!(explanation.decision.is_none());
    let said: Vec<_> = (explanation.mismatches.iter())
        .map(|(rule, misfit)| format!("{}: {misfit}", rule.line))
        .collect();
    assert_eq!(
        said,
        [
            "1: `from` is 192.0.2.1, not 10.0.0.0/8",
            "4: `to_port` is 443, not 22 or 80-90",
            "7: `interface` is none, not eth0",
        ]
    );
}

#[test]
fn every_mistake_is_reported_with_its_line_and_key() {
    let said = mistakes(
        "[[rules]]\nfrom = [\"10.0.0.1/8\", \"ten\", \"10.0.0.0/33\"]\nto_port = [0, \"9-1\", 70000]\n\
         dscp = \"best\"\ninterface = \"a b\"\ncongestion = { name = \"cubic\", speed = 1 }\n\
         [[rules]]\nport = 80\npass = true\n[[rules]]\n",
    );
    for part in [
        "p.toml:2: rules.0.from.0: `10.0.0.1/8`: there are bits behind the prefix; 10.0.0.0/8",
        "p.toml:2: rules.0.from.1: `ten`: `ten` is no IP address",
        "p.toml:2: rules.0.from.2: `10.0.0.0/33`: the length of a prefix is 0 to 32",
        "p.toml:3: rules.0.to_port.0: `0` is no port",
        "p.toml:3: rules.0.to_port.1: `9-1` is no port",
        "p.toml:3: rules.0.to_port.2: `70000` is no port",
        "p.toml:4: rules.0.dscp: `best` is no DSCP: it is a number from 0 to 63, or one of",
        "p.toml:5: rules.0.interface: `a b` names no interface",
        "p.toml:6: rules.0.congestion.speed:",
        "p.toml:8: rules.1.port: there is no such key",
        "p.toml:10: rules.2: the rule does not say what is to be done",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(mistakes("").contains("rules: missing"));
    assert!(mistakes("[[rules]]\nto = []\npass = true").contains("an empty list fits no flow"));
    assert!(mistakes("[[rules]]\nto = 1.5\npass = true").contains("expected a set of addresses"));
    assert!(mistakes("rules = [").contains("p.toml:1: "));
    let both = mistakes("[[rules]]\ncongestion = \"bbr\"\npass = true");
    assert!(
        both.contains("p.toml:3: rules.0.pass: flows cannot be"),
        "{both}"
    );
}

#[test]
fn policies_have_no_plug_ins() {
    let said = mistakes("[[rules]]\ncongestion = { plugin = \"mine.wasm\" }");
    assert!(said.contains("only scenarios have plug-ins"), "{said}");
}

#[test]
fn a_share_divides_connections() {
    let policy = policy(
        r#"seed = 5
[[rules]]
to_port = 1
share = 0.25
congestion = "bbr"
[[rules]]
to_port = 1
share = 0.5
congestion = "dctcp"
compare = true
undo_if = ["retransmits > 2x for 30s", "rtt > 20ms for 1min"]
[[rules]]
congestion = "cubic"
"#,
    );
    let mut counts = [0_u32; 4];
    for port in 1..=20_000 {
        let flow = flow(&format!("10.0.0.1:{port}"), "10.0.0.2:1");
        let decision = policy.decision(&flow).unwrap();
        let place = match (decision.rule.line, decision.group) {
            (2, Group::Treated) => 0,
            (6, Group::Treated) => 1,
            (6, Group::Control) => 2,
            other => panic!("{other:?}"),
        };
        counts[place] += 1;
        let name = decision.control().map(|control| control.congestion.name());
        assert_eq!(name, [Some("bbr"), Some("dctcp"), None][place]);
        let explained = policy.explain(&flow);
        assert_eq!(explained.decision, Some(decision));
        for (rule, mismatch) in explained.mismatches {
            assert_eq!((rule.line, mismatch.key), (2, "share"));
            assert_eq!(mismatch.wanted, "below 0.25");
        }
    }
    // Standard deviations of 61 and below.
    for (count, expected) in counts.into_iter().zip([5_000, 7_500, 7_500]) {
        assert!(count.abs_diff(expected) < 300, "{counts:?}");
    }
    let guards: Vec<_> = policy.rules[1]
        .undo_if
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(guards, ["retransmits > 2x for 30s", "rtt > 20ms for 1min"]);
    assert!(policy.rules[1].needs_records() && !policy.rules[0].needs_records());
}

#[test]
fn mistakes_of_canaries_say_what_would_be_right() {
    let said = mistakes(
        "seed = -1\n[[rules]]\ncongestion = \"bbr\"\nshare = 0\ncompare = 1\n\
         undo_if = [\"rtt > 2 for 30s\", \"speed < 1x for 1s\", 7]\n\
         [[rules]]\ncongestion = \"bbr\"\ncompare = true\n\
         [[rules]]\ncongestion = \"bbr\"\nshare = 0.5\nundo_if = \"rtt > 2x for 30s\"\n\
         [[rules]]\npass = true\nshare = 0.5\nundo_if = \"rtt > 2ms for 30s\"\n\
         [[rules]]\nshare = \"all\"\npass = true\nundo_if = []\n",
    );
    for part in [
        "p.toml:1: seed: -1 is outside",
        "p.toml:4: rules.0.share: 0 is outside what makes sense: expected a number above 0 and at most 1",
        "p.toml:5: rules.0.compare: expected true or false",
        "p.toml:6: rules.0.undo_if.0: `2` is no value of `rtt`",
        "p.toml:6: rules.0.undo_if.1: there is no metric `speed`",
        "p.toml:6: rules.0.undo_if.2: expected a condition such as",
        "p.toml:9: rules.1.compare: no connections are left to compare with",
        "p.toml:13: rules.2.undo_if: `rtt > 2x for 30s` compares with a control group",
        "p.toml:17: rules.3.undo_if: a rule that leaves connections alone",
        "p.toml:19: rules.4.share: expected a number above 0",
        "p.toml:21: rules.4.undo_if: an empty list never holds",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn a_mistake_has_one_line_whatever_the_value() {
    let said = mistakes("[[rules]]\npass = true\nfrom = \"\"\"a\nb\"\"\"\n");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(r"`a\nb`"), "{said}");
}

proptest! {
    /// For any file, reading returns a policy, or mistakes with lines.
    #[test]
    fn any_text_is_a_policy_or_a_list_of_mistakes(text in "(\\[\\[rules\\]\\]\n|(from|to_port|dscp|pass|congestion) = [a-z0-9\"./-]{0,8}\n){0,6}") {
        if let Err(error) = parse_policy("p.toml", &text) {
            prop_assert!(error.to_string().lines().all(|line| line.starts_with("p.toml:")), "{}", error);
        }
    }
}
