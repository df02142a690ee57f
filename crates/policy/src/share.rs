//! Which connections a rule with a `share` takes: a hash of the four-tuple and a seed decides.

use std::fmt;
use std::net::IpAddr;

use weir_wire::FlowKey;

/// A part of all connections: those whose [hash](connection_hash()) is below the same part of 2³².
///
/// The four-tuple and the seed alone decide: each process and each host that has the same policy file
/// decides alike, and so do both ends of a connection. Whoever knows the file can choose ports that are in
/// the share.
///
/// ```
/// use weir_policy::{PolicyFlow, Share};
///
/// let flow = PolicyFlow::between("10.0.0.1:40000".parse()?, "10.0.0.2:443".parse()?);
/// assert!(Share::new(0.9, 0).is_some_and(|share| share.contains(&flow.key)));
/// assert!(Share::new(0.8, 0).is_some_and(|share| !share.contains(&flow.key)));
/// assert_eq!(Share::new(0.0, 0), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    fraction: f64,
    seed: u32,
}

/// The two groups into which a share divides a rule's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The rule's action applies.
    Treated,
    /// The connection is left alone, and measured for comparison.
    Control,
}

impl Group {
    /// Both groups.
    pub const ALL: [Self; 2] = [Self::Treated, Self::Control];
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Treated => "treated",
            Self::Control => "control",
        })
    }
}

/// The number of hashes.
const HASHES: f64 = 4_294_967_296.0;

impl Share {
    /// Creates a share of a fraction above 0 and at most 1; `None` for any other number.
    pub fn new(fraction: f64, seed: u32) -> Option<Self> {
        (fraction > 0.0 && fraction <= 1.0).then_some(Self { fraction, seed })
    }

    /// Creates the share of the rule that has this many rules with shares above it, in a file with this
    /// seed. Each rule draws by a seed of its own: otherwise a rule would get none of the connections that
    /// one above it has left over.
    pub fn of_rule(fraction: f64, file_seed: u32, rules_above: u32) -> Option<Self> {
        // The golden ratio of 2³², as in SplitMix: seeds far apart for each number.
        let seed = file_seed.wrapping_add(rules_above.wrapping_mul(0x9e37_79b9));
        Self::new(fraction, finalize(seed))
    }

    /// Returns the part of the connections, above 0 and at most 1.
    pub fn fraction(self) -> f64 {
        self.fraction
    }

    /// Returns the seed of the hash.
    pub fn seed(self) -> u32 {
        self.seed
    }

    /// Returns the number below which the hashes of its connections are: from 0 to 2³².
    pub fn threshold(self) -> u64 {
        (self.fraction * HASHES).round() as u64
    }

    /// Returns whether a connection is in the share, from either end's view.
    pub fn contains(self, key: &FlowKey) -> bool {
        u64::from(connection_hash(key, self.seed)) < self.threshold()
    }

    /// Returns where a connection's hash is among all, from 0 to below 1.
    pub(crate) fn position(self, key: &FlowKey) -> f64 {
        f64::from(connection_hash(key, self.seed)) / HASHES
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fraction)
    }
}

/// Returns the hash of a connection's four-tuple, which is the same for both directions.
///
/// Each end is five 32-bit words: the IPv6 address (an IPv4 address as `::ffff:a.b.c.d`) as four numbers,
/// most significant first, and the port. The hash of an end is MurmurHash3 (x86, 32 bits) of these words
/// with the seed; the hash of the connection is the finalizer of MurmurHash3, `fmix32`, of the sum of both
/// ends' hashes modulo 2³². `/bpf` may compute it from `bpf_ntohl` of the addresses' words.
///
/// | seed | one end | other end | hash |
/// |---|---|---|---|
/// | 0 | 10.0.0.1:40000 | 10.0.0.2:443 | 0xe13f4d57 |
/// | 1 | 10.0.0.1:40000 | 10.0.0.2:443 | 0xa3ee6c18 |
/// | 0xdeadbeef | 192.0.2.1:80 | 198.51.100.7:51515 | 0x2d2dd6da |
/// | 0 | \[2001:db8::1\]:40000 | \[2001:db8::2\]:443 | 0x4cac5332 |
/// | 7 | \[::1\]:1 | \[::1\]:65535 | 0x9d3d4182 |
pub fn connection_hash(key: &FlowKey, seed: u32) -> u32 {
    let one = end_hash(key.source, key.source_port, seed);
    let other = end_hash(key.destination, key.destination_port, seed);
    finalize(one.wrapping_add(other))
}

/// MurmurHash3_x86_32 of an address and a port.
fn end_hash(address: IpAddr, port: u16, seed: u32) -> u32 {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let bits = address.to_bits();
    let words = [
        (bits >> 96) as u32,
        (bits >> 64) as u32,
        (bits >> 32) as u32,
        bits as u32,
        u32::from(port),
    ];
    let hash = words.into_iter().fold(seed, |hash, word| {
        let word = word
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593);
        (hash ^ word)
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64)
    });
    finalize(hash ^ size_of_val(&words) as u32)
}

/// MurmurHash3's `fmix32`.
const fn finalize(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::PolicyFlow;

    fn key(one: &str, other: &str) -> FlowKey {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        PolicyFlow::between(end(one), end(other)).key
    }

    #[test]
    fn hashes_are_those_of_the_test_vectors() {
        for (seed, one, other, expected) in [
            (0, "10.0.0.1:40000", "10.0.0.2:443", 0xe13f_4d57),
            (0, "[::ffff:10.0.0.1]:40000", "10.0.0.2:443", 0xe13f_4d57),
            (1, "10.0.0.1:40000", "10.0.0.2:443", 0xa3ee_6c18),
            (
                0xdead_beef,
                "192.0.2.1:80",
                "198.51.100.7:51515",
                0x2d2d_d6da,
            ),
            (
                0,
                "[2001:db8::1]:40000",
                "[2001:db8::2]:443",
                0x4cac_5332_u32,
            ),
            (7, "[::1]:1", "[::1]:65535", 0x9d3d_4182),
        ] {
            let key = key(one, other);
            assert_eq!(connection_hash(&key, seed), expected, "{one} {other}");
            assert_eq!(connection_hash(&key.reversed(), seed), expected);
        }
    }

    /// Successive ports of one client, as connections have them: each rule takes its part, also of what
    /// another has left over.
    #[test]
    fn shares_of_several_rules_are_independent() {
        let (first, second) = (Share::of_rule(0.5, 3, 0), Share::of_rule(0.5, 3, 1));
        let (first, second) = (first.unwrap(), second.unwrap());
        let ports = 1024..=65_535_u16;
        let keys = ports.map(|port| FlowKey {
            source_port: port,
            ..key("10.0.0.1:1", "10.0.0.2:443")
        });
        let left: Vec<_> = keys.filter(|key| !first.contains(key)).collect();
        let taken = left.iter().filter(|key| second.contains(key)).count();
        // A fair coin for some 32,000 connections: a deviation of 90 is one standard deviation.
        assert!(left.len().abs_diff(32_256) < 500, "{}", left.len());
        assert!(taken.abs_diff(left.len() / 2) < 400, "{taken}");
    }

    #[test]
    fn the_whole_is_all_connections() {
        let all = Share::new(1.0, 9).unwrap();
        assert_eq!(all.threshold(), 1 << 32);
        for wrong in [0.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert_eq!(Share::new(wrong, 0), None);
        }
    }

    proptest! {
        /// A larger share contains a smaller one with the same seed: a canary that grows keeps its
        /// connections.
        #[test]
        fn a_share_grows_without_a_change_of_sides(
            ports: (u16, u16), seed: u32, less in 0.001_f64..1.0, more in 0.0_f64..1.0,
        ) {
            let smaller = Share::new(less, seed).unwrap();
            let larger = Share::new(less + (1.0 - less) * more, seed).unwrap();
            let key = FlowKey { source_port: ports.0, destination_port: ports.1, ..key("10.0.0.1:1", "[::1]:2") };
            prop_assert!(!smaller.contains(&key) || larger.contains(&key));
            prop_assert_eq!(smaller.contains(&key), smaller.contains(&key.reversed()));
        }
    }
}
