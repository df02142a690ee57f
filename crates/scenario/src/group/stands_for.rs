//! `[groups.NAME.stands_for]`: the real connections that a group models, as the rules of a policy match
//! them.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_policy::{CgroupPath, CommandPattern, Dscp, PolicyRule, PortRange, Prefix, User};
use weir_scenario_derive::Keys;

use crate::document::Reported;
use crate::policy_file::condition;
use crate::schema::{Accepts, Fields};

/// The real connections that a group models. What is `None` is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Keys)]
#[keys(
    title = "[groups.NAME.stands_for]",
    doc = "The connections that the group models, as the rules of a policy match them (`weir run --policy`): see \
           docs/rollout.md. `from` is the sender of the data; with requests, that of the responses. A policy that \
           asks for a key that is absent here is refused."
)]
pub struct StandsFor {
    /// The addresses of the data's senders.
    #[key(accepts = ADDRESSES, absent = "not said", read = condition::value(at))]
    pub from: Option<Prefix>,
    /// The addresses of the data's receivers.
    #[key(accepts = ADDRESSES, absent = "not said", read = condition::value(at))]
    pub to: Option<Prefix>,
    /// The data's source ports.
    #[key(accepts = PORTS, absent = "not said", read = condition::value(at))]
    pub from_port: Option<PortRange>,
    /// The data's destination ports.
    #[key(accepts = PORTS, absent = "not said", read = condition::value(at))]
    pub to_port: Option<PortRange>,
    /// The DSCP of the data's packets.
    #[key(
        accepts = Accepts::Other("a name such as \"af41\" or \"ef\", or a number from 0 to 63"),
        absent = "not said",
        read = condition::value(at)
    )]
    pub dscp: Option<Dscp>,
    /// The control group of the process that sends the data.
    #[key(
        accepts = Accepts::Other("a path such as \"/system.slice/nginx.service\""),
        absent = "not said",
        read = condition::value(at)
    )]
    pub cgroup: Option<CgroupPath>,
    /// The user of that process.
    #[key(
        accepts = Accepts::Other("a user's name or number"),
        absent = "not said",
        read = condition::value(at)
    )]
    pub user: Option<User>,
    /// The name of that process.
    #[key(
        accepts = Accepts::Other("a process's name, or a beginning of names such as \"java*\""),
        absent = "not said",
        read = condition::value(at)
    )]
    pub command: Option<CommandPattern>,
}

const ADDRESSES: Accepts = Accepts::Other("a set of addresses such as \"10.0.0.0/8\"");
const PORTS: Accepts = Accepts::Other("a port such as 443, or a range such as \"8000-8999\"");

/// How much of one set lies in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// All of it.
    Whole,
    /// A part of it.
    Part,
    /// Nothing.
    None,
}

/// Whether a group's connections meet a rule's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// All of them do.
    All,
    /// None does.
    None,
    /// The group does not say this key, for which the rule asks.
    NotSaid(&'static str),
    /// Some do by this key, and others do not.
    Some(&'static str),
}

impl StandsFor {
    pub(super) fn read_in(fields: &Fields<'_>) -> Result<Option<Self>, Reported> {
        (fields.at("stands_for"))
            .map(|at| Self::read(&at, ()))
            .transpose()
    }

    /// Compares the connections with a rule's conditions, but for its share and its interfaces.
    pub(crate) fn fit(&self, rule: &PolicyRule) -> Fit {
        let overlaps = [
            ("from", overlap(&rule.from, self.from.as_ref(), addresses)),
            ("to", overlap(&rule.to, self.to.as_ref(), addresses)),
            (
                "from_port",
                overlap(&rule.from_ports, self.from_port.as_ref(), ports),
            ),
            (
                "to_port",
                overlap(&rule.to_ports, self.to_port.as_ref(), ports),
            ),
            ("dscp", overlap(&rule.dscp, self.dscp.as_ref(), equal)),
            (
                "cgroup",
                overlap(&rule.cgroups, self.cgroup.as_ref(), control_groups),
            ),
            ("user", overlap(&rule.users, self.user.as_ref(), equal)),
            (
                "command",
                overlap(&rule.commands, self.command.as_ref(), commands),
            ),
        ];
        // One condition that none meets decides, whatever is not known.
        if (overlaps.iter()).any(|(_, overlap)| *overlap == Some(Overlap::None)) {
            return Fit::None;
        }
        let undecided = overlaps.iter().find_map(|(key, overlap)| match overlap {
            None => Some(Fit::NotSaid(key)),
            Some(Overlap::Part) => Some(Fit::Some(key)),
            Some(Overlap::Whole | Overlap::None) => None,
        });
        undecided.unwrap_or(Fit::All)
    }
}

/// Returns how much of the group's set is in the rule's sets; `None` if it is not known.
fn overlap<T>(
    rule: &[T],
    group: Option<&T>,
    compare: impl Fn(&T, &T) -> Overlap,
) -> Option<Overlap> {
    if rule.is_empty() {
        return Some(Overlap::Whole);
    }
    let group = group?;
    let overlaps = rule.iter().map(|set| compare(set, group));
    Some(
        overlaps.fold(Overlap::None, |sum, overlap| match (sum, overlap) {
            (Overlap::Whole, _) | (_, Overlap::Whole) => Overlap::Whole,
            (Overlap::None, other) | (other, Overlap::None) => other,
            (Overlap::Part, Overlap::Part) => Overlap::Part,
        }),
    )
}

fn equal<T: PartialEq>(rule: &T, group: &T) -> Overlap {
    if rule == group {
        Overlap::Whole
    } else {
        Overlap::None
    }
}

fn addresses(rule: &Prefix, group: &Prefix) -> Overlap {
    if rule.length() <= group.length() && rule.contains(group.address()) {
        Overlap::Whole
    } else if group.contains(rule.address()) {
        Overlap::Part
    } else {
        Overlap::None
    }
}

fn ports(rule: &PortRange, group: &PortRange) -> Overlap {
    let (rule, group) = (rule.ports(), group.ports());
    if rule.contains(group.start()) && rule.contains(group.end()) {
        Overlap::Whole
    } else if rule.start() <= group.end() && group.start() <= rule.end() {
        Overlap::Part
    } else {
        Overlap::None
    }
}

fn control_groups(rule: &CgroupPath, group: &CgroupPath) -> Overlap {
    if rule.contains(group.as_str()) {
        Overlap::Whole
    } else if group.contains(rule.as_str()) {
        Overlap::Part
    } else {
        Overlap::None
    }
}

fn commands(rule: &CommandPattern, group: &CommandPattern) -> Overlap {
    let (name, is_whole) = group.name();
    let (wanted, one_name) = rule.name();
    if rule.matches(name) && (is_whole || !one_name) {
        Overlap::Whole
    } else if !is_whole && wanted.starts_with(name) {
        Overlap::Part
    } else {
        Overlap::None
    }
}

impl Serialize for StandsFor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = [
            ("from", self.from.map(|value| value.to_string())),
            ("to", self.to.map(|value| value.to_string())),
            (
                "from_port",
                self.from_port.as_ref().map(PortRange::to_string),
            ),
            ("to_port", self.to_port.as_ref().map(PortRange::to_string)),
            ("dscp", self.dscp.map(|value| value.to_string())),
            ("cgroup", self.cgroup.as_ref().map(CgroupPath::to_string)),
            ("user", self.user.as_ref().map(User::to_string)),
            (
                "command",
                self.command.as_ref().map(CommandPattern::to_string),
            ),
        ];
        let mut table = serializer.serialize_map(None)?;
        for (key, text) in &texts {
            if let Some(text) = text {
                table.serialize_entry(key, text)?;
            }
        }
        table.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{Fit, StandsFor};
    use crate::parse_policy;

    fn fit(group: &StandsFor, conditions: &str) -> Fit {
        let text = format!("[[rules]]\npass = true\n{conditions}");
        let policy = parse_policy("policy.toml", &text).unwrap();
        group.fit(&policy.rules[0])
    }

    fn web() -> StandsFor {
        StandsFor {
            from: Some("10.1.2.0/24".parse().unwrap()),
            from_port: Some("8000-8009".parse().unwrap()),
            cgroup: Some("/system.slice/nginx.service".parse().unwrap()),
            command: Some("nginx".parse().unwrap()),
            user: Some("www-data".parse().unwrap()),
            ..StandsFor::default()
        }
    }

    #[test]
    fn a_rule_without_conditions_fits_all() {
        assert_eq!(fit(&web(), ""), Fit::All);
        assert_eq!(fit(&StandsFor::default(), ""), Fit::All);
    }

    #[test]
    fn conditions_are_sets() {
        let web = web();
        for (conditions, fits) in [
            ("from = \"10.0.0.0/8\"", Fit::All),
            ("from = [\"10.2.0.0/16\", \"10.1.2.0/24\"]", Fit::All),
            ("from = \"10.2.0.0/16\"", Fit::None),
            ("from = \"10.1.2.128/25\"", Fit::Some("from")),
            ("from = \"fd00::/8\"", Fit::None),
            ("from_port = \"8000-8999\"", Fit::All),
            ("from_port = [80, 8001]", Fit::Some("from_port")),
            ("from_port = 80", Fit::None),
            ("cgroup = \"/system.slice\"", Fit::All),
            (
                "cgroup = \"/system.slice/nginx.service/worker\"",
                Fit::Some("cgroup"),
            ),
            ("cgroup = \"/user.slice\"", Fit::None),
            ("command = \"ngin*\"", Fit::All),
            ("command = \"nginx\"", Fit::All),
            ("command = \"java*\"", Fit::None),
            ("user = [\"backup\", \"www-data\"]", Fit::All),
            ("user = \"backup\"", Fit::None),
        ] {
            assert_eq!(fit(&web, conditions), fits, "{conditions}");
        }
        let java = StandsFor {
            command: Some("java*".parse().unwrap()),
            ..StandsFor::default()
        };
        assert_eq!(fit(&java, "command = \"javac\""), Fit::Some("command"));
        assert_eq!(fit(&java, "command = \"java\""), Fit::Some("command"));
        assert_eq!(fit(&java, "command = \"ja*\""), Fit::All);
    }

    #[test]
    fn what_is_not_said_matters_only_if_the_rest_fits() {
        let web = web();
        assert_eq!(fit(&web, "to = \"10.0.0.0/8\""), Fit::NotSaid("to"));
        assert_eq!(
            fit(&web, "to = \"10.0.0.0/8\"\nfrom = \"10.2.0.0/16\""),
            Fit::None
        );
    }
}
