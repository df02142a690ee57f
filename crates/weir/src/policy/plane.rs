//! Where a policy is put in force. A command loads its policy by the same function as `weir policy check`,
//! so that both find the same mistakes.

use std::path::Path;

use clap::ValueEnum;
use weir_enforce::{cgroup, ebpf, inline};
use weir_policy::{Policy, PolicyRule, RuleFinding};
use weir_scenario::{CheckedPolicy, load_policy_for, parse_policy_for};
use weir_traffic::throughput;

/// What puts a policy in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plane {
    /// `weir enforce --interface`
    Enforce,
    /// `weir enforce --inline`
    Inline,
    /// `weir enforce --cgroup`
    Cgroup,
    /// `weir perf server` and `weir perf client`, by DCQUIC
    Dcquic,
}

impl Plane {
    /// Loads a policy file and checks that it can be put in force. `interfaces` are those that it is for;
    /// none if they are not known.
    pub(crate) fn load(self, file: &Path, interfaces: &[String]) -> CheckedPolicy {
        load_policy_for(file, self.check(interfaces))
    }

    /// Reads a version of a controller's policy, whose empty text is the empty policy, and checks that it can be
    /// put in force.
    pub(crate) fn read(self, name: &str, text: &str, interfaces: &[String]) -> CheckedPolicy {
        if text.is_empty() {
            return CheckedPolicy {
                policy: Ok(Policy::default()),
                warnings: Vec::new(),
            };
        }
        parse_policy_for(name, text, self.check(interfaces))
    }

    fn check(self, interfaces: &[String]) -> impl Fn(&PolicyRule) -> Vec<RuleFinding> {
        let place = cgroup::RuleCheck::new();
        move |rule| match self {
            Self::Cgroup => place.check(rule),
            Self::Enforce => ebpf::check_rule(rule, interfaces),
            Self::Inline => inline::check_rule(rule, interfaces),
            Self::Dcquic => throughput::check_policy_rule(rule, interfaces),
        }
    }
}
