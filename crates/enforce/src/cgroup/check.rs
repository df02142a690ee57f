//! What the plane at sockets can do with the rules of a policy.

use std::cell::Cell;

use rustix::time::{ClockId, clock_getres};
use weir_policy::{PolicyRule, RuleFinding};
use weir_tcon::FlowPolicy;
use weir_units::Duration;

use super::algorithm::{KernelAlgorithm, KernelCongestion};
use super::rules::{LIMITS, MOST_RULES};
use super::user::user_id;
use crate::bpf::kernel_offers;

/// The longest time of the kernel for both times that a rule may set (`TCP_RTO_MIN`, `TCP_DELACK_MAX`).
const LONGEST: Duration = Duration::from_millis(200);

/// Checks the rules of a policy one after the other.
#[derive(Debug, Default)]
pub struct RuleCheck {
    rules: Cell<usize>,
}

impl RuleCheck {
    /// Begins a check.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next rule for the kernel and the users of this machine.
    pub fn check(&self, rule: &PolicyRule) -> Vec<RuleFinding> {
        self.rules.set(self.rules.get() + 1);
        let mut findings = Vec::new();
        if self.rules.get() == MOST_RULES + 1 {
            findings.push(RuleFinding::refused(
                "rules",
                format!("the programs take {MOST_RULES} rules"),
                "join rules by lists of conditions",
            ));
        }
        findings.extend(too_long(rule));
        findings.extend(conditions(rule));
        findings.extend(control(rule));
        findings.extend(times(rule));
        findings
    }
}

/// Returns the conditions with more values than the programs take.
fn too_long(rule: &PolicyRule) -> impl Iterator<Item = RuleFinding> {
    let found = LIMITS
        .into_iter()
        .filter(|limit| (limit.length)(rule) > limit.most);
    let found: Vec<_> = found
        .map(|limit| {
            let most = limit.most;
            RuleFinding::refused(
                limit.key,
                format!("the programs take {most} values of it in a rule"),
                "split the rule",
            )
        })
        .collect();
    found.into_iter()
}

fn conditions(rule: &PolicyRule) -> Vec<RuleFinding> {
    let mut findings = Vec::new();
    if !rule.interfaces.is_empty() {
        findings.push(RuleFinding::refused(
            "interface",
            "the interface of a socket's data is not known when its connection opens",
            "name the networks behind it by `to`, or its addresses by `from`",
        ));
    }
    for user in &rule.users {
        if user_id(user).is_none() {
            findings.push(RuleFinding::refused(
                "user",
                format!("there is no user `{user}` on this machine"),
                "name one of `getent passwd`, or write a number",
            ));
        }
    }
    findings
}

fn control(rule: &PolicyRule) -> Vec<RuleFinding> {
    let Some(control) = &rule.control else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    match KernelCongestion::of(&control.congestion) {
        Ok(congestion) => findings.extend(lacks(congestion.algorithm)),
        Err(error) => {
            findings.push(RuleFinding::refused(
                "congestion",
                error.problem,
                error.remedy,
            ));
        }
    }
    if control.buffer != FlowPolicy::BUFFER {
        findings.push(RuleFinding::warning(
            "buffer",
            "it has no effect: at sockets no data is kept",
            "leave it out, or let the data pass `weir enforce --inline`",
        ));
    }
    findings
}

/// Returns a finding if the kernel lacks an algorithm.
fn lacks(algorithm: KernelAlgorithm) -> Option<RuleFinding> {
    let problem = match algorithm {
        KernelAlgorithm::Own(name) if kernel_offers(name).unwrap_or(true) => return None,
        KernelAlgorithm::Own(name) => format!(
            "the kernel of this machine has no `{name}`, only {}",
            offered()
        ),
        _ if cfg!(bpf_programs) => return None,
        _ => "it is a program, and this build has none".to_owned(),
    };
    Some(RuleFinding::refused(
        "congestion",
        problem,
        "name another one, or load the kernel's module (tcp_NAME)",
    ))
}

fn offered() -> String {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(list).unwrap_or_default();
    names.split_whitespace().collect::<Vec<_>>().join(", ")
}

fn times(rule: &PolicyRule) -> impl Iterator<Item = RuleFinding> {
    let shortest = tick() * 2;
    let times = [
        ("min_rto", rule.socket.min_rto),
        ("max_ack_delay", rule.socket.max_ack_delay),
    ];
    times.into_iter().filter_map(move |(key, time)| {
        let time = time.filter(|time| *time < shortest || *time > LONGEST)?;
        Some(RuleFinding::refused(
            key,
            format!("the kernel does not take {time}"),
            format!("write {shortest} (two ticks of this kernel) to {LONGEST}"),
        ))
    })
}

/// Returns the time between two ticks of the kernel's timers.
pub(super) fn tick() -> Duration {
    // The resolution of the clock that is read from the last tick.
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    std::time::Duration::try_from(resolution).map_or(Duration::from_millis(4), Duration::from)
}

#[cfg(test)]
mod tests {
    use weir_scenario::parse_policy_for;

    use super::*;

    fn mistakes(text: &str) -> String {
        let check = RuleCheck::new();
        let checked = parse_policy_for("p.toml", text, |rule| check.check(rule));
        checked
            .policy
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_with_line_and_key() {
        let said = mistakes(
            "[[rules]]\ncongestion = \"swift\"\n\
             [[rules]]\ninterface = \"eth0\"\npass = true\n\
             [[rules]]\nuser = \"no_such_user_\"\ncongestion = \"cubic\"\nmin_rto = \"1us\"\n\
             [[rules]]\ncongestion = { name = \"bbr\", max_window = \"1MB\", min_window = 8 }\n\
             max_ack_delay = \"1s\"\n",
        );
        for part in [
            "p.toml:2: rules.0.congestion: the kernel has no `swift`",
            "p.toml:4: rules.1.interface: ",
            "p.toml:7: rules.2.user: there is no user",
            "p.toml:9: rules.2.min_rto: the kernel does not take 1us",
            "p.toml:11: rules.3.congestion: the kernel's `bbr` takes no `min_window = 8`",
            "p.toml:12: rules.3.max_ack_delay: ",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert_eq!(
            mistakes(
                "[[rules]]\nuser = [\"root\", 33]\ncommand = \"java*\"\ncgroup = \"/a/b\"\n\
                 congestion = { name = \"cubic\", initial_window = 20, max_window = \"1MB\" }\n\
                 min_rto = \"50ms\"\nmax_ack_delay = \"20ms\"\nset_dscp = \"af41\"\n"
            ),
            ""
        );
    }

    #[test]
    fn policies_and_lists_that_are_too_long_name_the_limit() {
        let rule = "[[rules]]\npass = true\n";
        assert_eq!(mistakes(&rule.repeat(MOST_RULES)), "");
        let said = mistakes(&rule.repeat(MOST_RULES + 1));
        assert!(
            said.contains("rules.256: the programs take 256 rules"),
            "{said}"
        );
        let ports: Vec<_> = (1..=17).map(|port: u32| port.to_string()).collect();
        let said = mistakes(&format!(
            "[[rules]]\nto_port = [{}]\npass = true\n",
            ports.join(", ")
        ));
        assert!(
            said.contains("rules.0.to_port: the programs take 16 values"),
            "{said}"
        );
    }
}
