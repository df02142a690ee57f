//! What an interface can do with the rules of a policy.

use weir_policy::{PolicyRule, RuleFinding};
use weir_tcon::FlowPolicy;

/// Checks a rule for an [`Enforcer`](super::Enforcer) whose programs are at the `attached` interfaces; none
/// if they are not known.
pub fn check_rule(rule: &PolicyRule, attached: &[String]) -> Vec<RuleFinding> {
    let mut findings = rule.needs_sockets();
    findings.extend(rule.needs_no_records());
    if let Some(control) = &rule.control {
        if control.ecn == Some(true) {
            findings.push(RuleFinding::refused(
                "ecn",
                "at an interface nobody negotiates ECN for the ends",
                "turn it on at both (net.ipv4.tcp_ecn = 1), and leave `ecn` out",
            ));
        }
        if control.buffer != FlowPolicy::BUFFER {
            findings.push(RuleFinding::warning(
                "buffer",
                "it has no effect: at an interface no data is kept",
                "leave it out, or let the data pass `weir enforce --inline`",
            ));
        }
    }
    findings.extend(rule.unmatched_interfaces(attached));
    findings
}

#[cfg(test)]
mod tests {
    use weir_policy::Severity;
    use weir_scenario::{Position, parse_policy_for};

    use super::*;

    fn check(rule: &PolicyRule) -> Vec<RuleFinding> {
        check_rule(rule, &["eth0".to_owned()])
    }

    #[test]
    fn rules_that_negotiate_ecn_are_refused_all_at_once() {
        let text = "[[rules]]\ncongestion = \"dctcp\"\necn = true\n\
                    [[rules]]\nto = 7\npass = true\n\
                    [[rules]]\ncongestion = \"bbr\"\necn = true\n";
        let checked = parse_policy_for("p.toml", text, check);
        let error = checked.policy.unwrap_err().to_string();
        let lines: Vec<_> = error.lines().collect();
        assert!(
            lines[0].starts_with("p.toml:3: rules.0.ecn: at an interface"),
            "{error}"
        );
        assert!(lines[0].ends_with("and leave `ecn` out"), "{error}");
        assert!(lines[1].starts_with("p.toml:5: rules.1.to: "), "{error}");
        assert!(lines[2].starts_with("p.toml:9: rules.2.ecn: "), "{error}");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn rules_for_other_interfaces_and_buffers_are_warned_of() {
        let text = "[[rules]]\ninterface = [\"eth1\", \"veth*\"]\npass = true\n\
                    [[rules]]\ninterface = \"eth*\"\ncongestion = \"dctcp\"\necn = false\n\
                    [[rules]]\ncongestion = \"cubic\"\nbuffer = \"1MB\"\n";
        let checked = parse_policy_for("p.toml", text, check);
        let rules = checked.policy.unwrap().rules;
        assert_eq!(rules.len(), 3);
        let found: Vec<_> = { checked.warnings.iter() }
            .map(|warning| (warning.position.clone(), warning.key.as_str()))
            .collect();
        let expected = [(2, "rules.0.interface"), (10, "rules.2.buffer")];
        assert_eq!(
            found,
            expected.map(|(line, key)| (Position::Line(line), key))
        );
        let said = checked.warnings[0].to_string();
        assert!(
            said.contains("eth1 or veth* is not attached") && said.ends_with(": eth0"),
            "{said}"
        );
        let unknown = |rule: &PolicyRule| check_rule(rule, &[]);
        let checked = parse_policy_for("p.toml", text, unknown);
        assert_eq!(checked.warnings.len(), 1);
        let refused = |finding: &RuleFinding| finding.severity == Severity::Refused;
        let mut all = rules.iter().flat_map(check);
        assert!(!all.any(|finding| refused(&finding)));
    }
}
