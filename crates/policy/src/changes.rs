//! The difference between two versions of a policy.

use std::fmt;

use crate::{Policy, PolicyRule};

/// A rule that differs between two versions of a policy, by the lines of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// A rule that only the new version has.
    Added {
        /// Its line in the new file.
        line: u32,
    },
    /// A rule that only the old version has.
    Removed {
        /// Its line in the old file.
        line: u32,
    },
    /// A rule with other conditions or another action in the same place.
    Changed {
        /// Its line in the old file.
        from: u32,
        /// Its line in the new file.
        to: u32,
    },
}

impl fmt::Display for RuleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { line } => write!(f, "added line {line}"),
            Self::Removed { line } => write!(f, "removed line {line}"),
            Self::Changed { from, to } if from == to => write!(f, "changed line {to}"),
            Self::Changed { from, to } => write!(f, "changed line {to} (was line {from})"),
        }
    }
}

/// Versions whose differing parts have more pairs of rules than this are compared in order only.
const MOST_PAIRS: usize = 1_000_000;

impl Policy {
    /// Returns how `new` differs from this version, in the order of the files. The order of rules counts,
    /// as the first match applies: a rule that has moved past another one is removed and added.
    pub fn changes(&self, new: &Self) -> Vec<RuleChange> {
        let (mut old, mut new) = (self.rules.as_slice(), new.rules.as_slice());
        while let ([one, old_rest @ ..], [other, new_rest @ ..]) = (old, new)
            && one.is_same(other)
        {
            (old, new) = (old_rest, new_rest);
        }
        while let ([old_rest @ .., one], [new_rest @ .., other]) = (old, new)
            && one.is_same(other)
        {
            (old, new) = (old_rest, new_rest);
        }
        let mut changes = Vec::new();
        for (old, new) in differing(old, new) {
            let both = old.len().min(new.len());
            let pairs = old.iter().zip(new);
            changes.extend(pairs.map(|(old, new)| RuleChange::Changed {
                from: old.line,
                to: new.line,
            }));
            let rest = old.iter().skip(both);
            changes.extend(rest.map(|rule| RuleChange::Removed { line: rule.line }));
            let rest = new.iter().skip(both);
            changes.extend(rest.map(|rule| RuleChange::Added { line: rule.line }));
        }
        changes
    }
}

impl PolicyRule {
    /// Returns whether two rules do the same, wherever they are.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            line: _,
            from,
            to,
            from_ports,
            to_ports,
            interfaces,
            dscp,
            cgroups,
            users,
            commands,
            share,
            compare,
            control,
            undo_if,
            socket,
        } = self;
        *from == other.from
            && *to == other.to
            && *from_ports == other.from_ports
            && *to_ports == other.to_ports
            && *interfaces == other.interfaces
            && *dscp == other.dscp
            && *cgroups == other.cgroups
            && *users == other.users
            && *commands == other.commands
            && *share == other.share
            && *compare == other.compare
            && *control == other.control
            && *undo_if == other.undo_if
            && *socket == other.socket
    }
}

/// Returns the runs of rules between the ones that a longest common subsequence keeps.
fn differing<'r>(
    old: &'r [PolicyRule],
    new: &'r [PolicyRule],
) -> Vec<(&'r [PolicyRule], &'r [PolicyRule])> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return vec![(old, new)];
    }
    let width = new.len() + 1;
    // The length of the longest common subsequence of the rules from each pair of positions on.
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    let mut same = vec![false; (old.len() + 1) * width];
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            let here = i * width + j;
            same[here] = one.is_same(other);
            longest[here] = if same[here] {
                longest[here + width + 1] + 1
            } else {
                longest[here + width].max(longest[here + 1])
            };
        }
    }
    let mut runs = Vec::new();
    let ((mut i, mut j), (mut from, mut to)) = ((0, 0), (0, 0));
    while i < old.len() && j < new.len() {
        let here = i * width + j;
        if same[here] {
            runs.push((&old[from..i], &new[to..j]));
            (i, j) = (i + 1, j + 1);
            (from, to) = (i, j);
        } else if longest[here + width] >= longest[here + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    runs.push((&old[from..], &new[to..]));
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Creates a policy whose rules differ in their ports, two lines each.
    fn policy(ports: &[u16]) -> Policy {
        let rule = |(index, port): (usize, &u16)| PolicyRule {
            line: 2 * index as u32 + 1,
            to_ports: vec![(port + 1).to_string().parse().unwrap()],
            ..PolicyRule::new(None)
        };
        Policy {
            rules: ports.iter().enumerate().map(rule).collect(),
        }
    }

    fn text(old: &[u16], new: &[u16]) -> Vec<String> {
        let changes = policy(old).changes(&policy(new));
        changes.iter().map(RuleChange::to_string).collect()
    }

    #[test]
    fn changes_name_the_lines_of_the_files() {
        assert_eq!(text(&[1, 2, 3], &[1, 2, 3]), [""; 0]);
        assert_eq!(text(&[1, 2, 3], &[1, 9, 2, 3]), ["added line 3"]);
        assert_eq!(text(&[1, 2, 3], &[1, 3]), ["removed line 3"]);
        assert_eq!(text(&[1, 2, 3], &[1, 9, 3]), ["changed line 3"]);
        assert_eq!(
            text(&[1, 2, 3, 4], &[0, 1, 2, 9, 4]),
            ["added line 1", "changed line 7 (was line 5)"]
        );
        assert_eq!(
            text(&[1, 2], &[2, 1]),
            ["removed line 1", "added line 3"],
            "the order of rules counts"
        );
        assert_eq!(text(&[], &[1]), ["added line 1"]);
        assert_eq!(text(&[1], &[]), ["removed line 1"]);
    }

    proptest! {
        /// The changes lead from the old version to the new one, and there are none between equal versions.
        #[test]
        fn changes_lead_from_one_version_to_the_other(
            old in proptest::collection::vec(0_u16..5, 0..12),
            new in proptest::collection::vec(0_u16..5, 0..12),
        ) {
            let changes = policy(&old).changes(&policy(&new));
            let index = |line: u32| (line as usize - 1) / 2;
            let (mut gone, mut come) = (vec![false; old.len()], vec![false; new.len()]);
            for change in &changes {
                match *change {
                    RuleChange::Added { line } => come[index(line)] = true,
                    RuleChange::Removed { line } => gone[index(line)] = true,
                    RuleChange::Changed { from, to } => {
                        gone[index(from)] = true;
                        come[index(to)] = true;
                    }
                }
            }
            let kept = |ports: &[u16], left_out: &[bool]| -> Vec<u16> {
                let both = ports.iter().zip(left_out);
                both.filter(|(_, out)| !**out).map(|(port, _)| *port).collect()
            };
            prop_assert_eq!(kept(&old, &gone), kept(&new, &come));
            prop_assert_eq!(changes.is_empty(), old == new);
        }
    }
}
