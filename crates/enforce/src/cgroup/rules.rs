//! Rules as the programs read them: `struct ruleset` of `bpf/socket_rules.h`.

use std::net::IpAddr;

use weir_policy::{CommandPattern, PolicyRule, PortRange, Prefix, Share};
use weir_units::Duration;

use super::algorithm::KernelCongestion;
use super::user::user_id;

/// The most rules of a policy.
pub(super) const MOST_RULES: usize = 256;
const MOST_PREFIXES: usize = 8;
const MOST_GROUPS: usize = 8;
const MOST_COMMANDS: usize = 8;
const MOST_PORTS: usize = 16;
const MOST_USERS: usize = 16;
/// The most characters of an algorithm's name, with a zero at the end.
const NAME: usize = 16;

/// The size of a rule, and of what precedes the rules.
const RULE: usize = 2 * MOST_PREFIXES * 40
    + MOST_GROUPS * 8
    + MOST_COMMANDS * 32
    + 2 * 8
    + 2 * MOST_PORTS * 4
    + MOST_USERS * 4
    + 8 * 4
    + NAME
    + 5 * 4
    + 4
    + 2 * 4;
const HEAD: usize = 4 * 4;

/// The size of a version of the policy.
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs read it"))]
pub(super) const RULESET: usize = HEAD + MOST_RULES * RULE;

/// The share of all connections.
const WHOLE: u64 = 1 << 32;
/// A control group that does not exist; no socket is in it.
const NO_GROUP: u64 = u64::MAX;
/// A user that does not exist.
const NO_USER: u32 = u32::MAX;

/// A condition with as many values as the programs take.
pub(super) struct Limit {
    pub(super) key: &'static str,
    pub(super) most: usize,
    pub(super) length: fn(&PolicyRule) -> usize,
}

pub(super) const LIMITS: [Limit; 7] = [
    Limit::new("from", MOST_PREFIXES, |rule| rule.from.len()),
    Limit::new("to", MOST_PREFIXES, |rule| rule.to.len()),
    Limit::new("from_port", MOST_PORTS, |rule| rule.from_ports.len()),
    Limit::new("to_port", MOST_PORTS, |rule| rule.to_ports.len()),
    Limit::new("cgroup", MOST_GROUPS, |rule| rule.cgroups.len()),
    Limit::new("user", MOST_USERS, |rule| rule.users.len()),
    Limit::new("command", MOST_COMMANDS, |rule| rule.commands.len()),
];

impl Limit {
    const fn new(key: &'static str, most: usize, length: fn(&PolicyRule) -> usize) -> Self {
        Self { key, most, length }
    }
}

/// A rule with what it is on this machine.
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs read it"))]
#[derive(Debug)]
pub(super) struct SocketRule<'r> {
    pub(super) rule: &'r PolicyRule,
    /// Where its sockets are counted.
    pub(super) slot: u32,
    /// The kernel's name of its algorithm, and its limits; `None` if it passes.
    pub(super) congestion: Option<(String, KernelCongestion)>,
    /// The numbers of its control groups, `None` for those that do not exist.
    pub(super) groups: Vec<Option<u64>>,
    /// Whether its connections are measured.
    pub(super) is_measured: bool,
    /// Whether it was taken back.
    pub(super) is_off: bool,
}

/// Writes a version of the policy, whose rules and conditions are no more than the [`LIMITS`].
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs read it"))]
pub(super) fn write(rules: &[SocketRule<'_>]) -> Vec<u8> {
    let mut bytes = Bytes(Vec::with_capacity(RULESET));
    let any = |holds: fn(&SocketRule<'_>) -> bool| u32::from(rules.iter().any(holds));
    bytes.number(u32::try_from(rules.len()).unwrap_or(u32::MAX));
    bytes.number(any(|rule| !rule.rule.cgroups.is_empty()));
    bytes.number(any(|of| {
        !of.rule.users.is_empty() || !of.rule.commands.is_empty()
    }));
    bytes.number(any(|rule| rule.asks_ecn()));
    for rule in rules {
        rule.write(&mut bytes);
    }
    bytes.0.resize(RULESET, 0);
    bytes.0
}

impl SocketRule<'_> {
    /// Whether ECN is asked for in the handshake.
    fn asks_ecn(&self) -> bool {
        let ecn = self.rule.control.as_ref().and_then(|control| control.ecn);
        ecn.unwrap_or_else(|| self.needs_ecn())
    }

    fn needs_ecn(&self) -> bool {
        let congestion = self.congestion.as_ref();
        congestion.is_some_and(|(_, congestion)| congestion.algorithm.needs_ecn())
    }

    fn write(&self, bytes: &mut Bytes) {
        let rule = self.rule;
        bytes.list(MOST_PREFIXES, 40, &rule.from, write_prefix);
        bytes.list(MOST_PREFIXES, 40, &rule.to, write_prefix);
        bytes.list(MOST_GROUPS, 8, &self.groups, |bytes, group| {
            bytes.long(group.unwrap_or(NO_GROUP));
        });
        bytes.list(MOST_COMMANDS, 32, &rule.commands, write_command);
        let classes = rule.dscp.iter().map(|dscp| 1_u64 << dscp.number());
        bytes.long(classes.fold(0, |all, class| all | class));
        bytes.long(rule.share.map_or(WHOLE, Share::threshold));
        bytes.list(MOST_PORTS, 4, &rule.from_ports, write_ports);
        bytes.list(MOST_PORTS, 4, &rule.to_ports, write_ports);
        bytes.list(MOST_USERS, 4, &rule.users, |bytes, user| {
            bytes.number(user_id(user).unwrap_or(NO_USER));
        });
        let lengths = [
            rule.from.len(),
            rule.to.len(),
            self.groups.len(),
            rule.commands.len(),
            rule.from_ports.len(),
            rule.to_ports.len(),
            rule.users.len(),
        ];
        for length in lengths {
            bytes.number(length as u32);
        }
        bytes.number(self.slot);
        self.write_action(bytes);
    }

    fn write_action(&self, bytes: &mut Bytes) {
        let (name, congestion) = match &self.congestion {
            Some((name, congestion)) => (name.as_str(), Some(congestion)),
            None => ("", None),
        };
        let mut text = [0; NAME];
        for (place, byte) in text.iter_mut().take(NAME - 1).zip(name.bytes()) {
            *place = byte;
        }
        bytes.0.extend(text);
        let number =
            |of: fn(&KernelCongestion) -> Option<u32>| congestion.and_then(of).unwrap_or(0);
        bytes.number(number(|congestion| congestion.initial_window));
        bytes.number(number(|congestion| congestion.max_window));
        bytes.number(number(|congestion| congestion.max_rate));
        bytes.number(micros(self.rule.socket.min_rto));
        bytes.number(micros(self.rule.socket.max_ack_delay));
        let class = self
            .rule
            .socket
            .set_dscp
            .map_or(0, |dscp| dscp.number() + 1);
        bytes.0.extend([
            class,
            self.asks_ecn().into(),
            self.needs_ecn().into(),
            congestion.is_none().into(),
        ]);
        bytes.number(self.rule.share.map_or(0, Share::seed));
        bytes.0.extend([
            self.rule.compare.into(),
            self.is_measured.into(),
            self.is_off.into(),
            0,
        ]);
    }
}

fn micros(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| {
        u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX)
    })
}

fn write_prefix(bytes: &mut Bytes, prefix: &Prefix) {
    let (address, length, is_ipv4) = match prefix.address() {
        IpAddr::V4(address) => (address.to_ipv6_mapped(), prefix.length() + 96, true),
        IpAddr::V6(address) => (address, prefix.length(), false),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    for value in [address.to_bits(), mask] {
        bytes.long((value >> 64) as u64);
        bytes.long(value as u64);
    }
    bytes.number(is_ipv4.into());
    bytes.number(0);
}

fn write_command(bytes: &mut Bytes, command: &CommandPattern) {
    let (name, is_whole) = command.name();
    let (mut text, mut mask) = ([0; NAME], [0; NAME]);
    for ((text, mask), byte) in text.iter_mut().zip(&mut mask).zip(name.bytes()) {
        (*text, *mask) = (byte, u8::MAX);
    }
    if is_whole {
        mask = [u8::MAX; NAME];
    }
    bytes.0.extend(text);
    bytes.0.extend(mask);
}

fn write_ports(bytes: &mut Bytes, ports: &PortRange) {
    let ports = ports.ports();
    bytes.0.extend(ports.start().to_ne_bytes());
    bytes.0.extend(ports.end().to_ne_bytes());
}

/// Numbers in memory's order.
struct Bytes(Vec<u8>);

impl Bytes {
    fn number(&mut self, value: u32) {
        self.0.extend(value.to_ne_bytes());
    }

    fn long(&mut self, value: u64) {
        self.0.extend(value.to_ne_bytes());
    }

    /// Writes an array of `most` items of a `size`, of which the last may be unused.
    fn list<T>(&mut self, most: usize, size: usize, items: &[T], write: impl Fn(&mut Self, &T)) {
        let end = self.0.len() + most * size;
        for item in items.iter().take(most) {
            write(self, item);
        }
        self.0.resize(end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_the_size_of_the_programs_record() {
        let rule = PolicyRule {
            from: vec!["10.0.0.0/8".parse().unwrap()],
            to: vec!["fd00::/8".parse().unwrap()],
            from_ports: vec!["80".parse().unwrap()],
            users: vec!["7".parse().unwrap()],
            commands: vec!["nginx".parse().unwrap(), "java*".parse().unwrap()],
            cgroups: vec!["/a".parse().unwrap()],
            dscp: vec!["ef".parse().unwrap()],
            ..PolicyRule::new(None)
        };
        let rule = SocketRule {
            rule: &rule,
            slot: 5,
            congestion: None,
            groups: vec![Some(9)],
            is_measured: false,
            is_off: false,
        };
        let mut bytes = Bytes(Vec::new());
        rule.write(&mut bytes);
        assert_eq!(bytes.0.len(), RULE);
        // The records in the programs are aligned to eight bytes.
        assert_eq!(RULE % 8, 0);
        let all = write(&[rule]);
        assert_eq!(all.len(), RULESET);
        assert_eq!(all[..4], 1_u32.to_ne_bytes());
        // 10.0.0.0/8, mapped.
        let first: [u8; 16] = all[HEAD..][..16].try_into().unwrap();
        assert_eq!(first[..8], [0; 8]);
        assert_eq!(first[8..], 0xffff_0a00_0000_u64.to_ne_bytes());
        let mask = all[HEAD + 24..][..8].first_chunk().unwrap();
        assert_eq!(u64::from_ne_bytes(*mask), !0 << 24);
    }
}
