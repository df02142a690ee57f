//! What the programs count: `struct counts` and `struct population` of `/bpf`.

/// Rules, of all versions of the policy, that sockets can belong to.
pub(super) const MOST_SLOTS: u32 = 1024;

/// The keys of what a rule sets, in the order of `enum option`.
pub(super) const OPTIONS: [&str; 7] = [
    "congestion",
    "max_window",
    "max_rate",
    "min_rto",
    "max_ack_delay",
    "set_dscp",
    "initial_window",
];

/// What became of the sockets of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) matched: u64,
    pub(super) applied: u64,
    pub(super) without_ecn: u64,
    pub(super) overridden: u64,
    pub(super) undone: u64,
    pub(super) not_undone: u64,
    pub(super) refused: [u64; OPTIONS.len()],
}

/// The sockets that belong to a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Population {
    /// Those that got what the rule says.
    pub(super) treated: u64,
    /// Those that are left alone for comparison.
    pub(super) control: u64,
    pub(super) without_ecn: u64,
    pub(super) overridden: u64,
}

#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs count"))]
impl Counts {
    pub(super) const SIZE: usize = 8 * (6 + OPTIONS.len());

    /// Reads the counts of a CPU.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut words = words(bytes);
        let mut next = || words.next().unwrap_or_default();
        Self {
            matched: next(),
            applied: next(),
            without_ecn: next(),
            overridden: next(),
            undone: next(),
            not_undone: next(),
            refused: std::array::from_fn(|_| next()),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let mut refused = self.refused;
        for (sum, count) in refused.iter_mut().zip(other.refused) {
            *sum += count;
        }
        Self {
            matched: self.matched + other.matched,
            applied: self.applied + other.applied,
            without_ecn: self.without_ecn + other.without_ecn,
            overridden: self.overridden + other.overridden,
            undone: self.undone + other.undone,
            not_undone: self.not_undone + other.not_undone,
            refused,
        }
    }
}

impl Population {
    /// Returns the number of all sockets.
    pub(super) fn sockets(self) -> u64 {
        self.treated + self.control
    }
}

#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs count"))]
impl Population {
    pub(super) const SIZE: usize = 8 * 4;

    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut words = words(bytes);
        let mut next = || words.next().unwrap_or_default();
        Self {
            treated: next(),
            control: next(),
            without_ecn: next(),
            overridden: next(),
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_cpus_are_added() {
        let bytes: Vec<u8> = (1..=13_u64).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(bytes.len(), Counts::SIZE);
        let counts = Counts::read(&bytes);
        assert_eq!(
            (counts.matched, counts.not_undone, counts.refused[6]),
            (1, 6, 13)
        );
        let both = counts.plus(counts);
        assert_eq!((both.matched, both.refused[0]), (2, 14));
        assert_eq!(Counts::read(&[]), Counts::default());
    }
}
