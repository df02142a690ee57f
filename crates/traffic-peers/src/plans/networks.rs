//! The plans for networks other than loopback.

use weir_lab::network::{LinkSettings, NetworkKind};
use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::run::{self, Latency};
use weir_traffic::calls::{Error, Placement};
use weir_units::{ByteSize, Duration};

use super::{Step, placements, plan};
use crate::arguments::Options;

/// The transports over a veth pair with an MTU of 1500. DCQUIC finds the packet size by itself; the
/// others are told.
pub(crate) const OVER_1500: [&str; 6] = [
    "dcquic",
    "tcp-tls",
    "floor@1452",
    "quinn@1452",
    "quiche@1452",
    "s2n-quic@1452",
];

/// The transports over a veth pair with an MTU of 9000. s2n-quic is there with its default too: at 8972 bytes its
/// new connections take 50 ms, probably as a window of two packets waits for delayed acknowledgments.
pub(crate) const OVER_9000: [&str; 7] = [
    "dcquic",
    "tcp-tls",
    "floor@8972",
    "quinn@8972",
    "quiche@8972",
    "s2n-quic@8972",
    "s2n-quic",
];

/// The transports over a link with a delay, where one round trip less shows.
pub(crate) const OVER_LINK: [&str; 2] = ["dcquic", "tcp-tls"];

/// The link's delay in each direction.
const DELAY: Duration = Duration::from_micros(25);

const SMALL: ByteSize = ByteSize::from_bytes(10_000);
const LARGE: ByteSize = ByteSize::from_bytes(100_000);

/// Returns the plans over veth pairs and over the lab's link.
pub(crate) fn networks(options: &Options) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    for (mtu, transports) in [(1500, &OVER_1500[..]), (9000, &OVER_9000[..])] {
        let mtu = ByteSize::from_bytes(mtu);
        steps.push(veth(options, mtu, transports)?);
    }
    steps.push(link(options)?);
    Ok(steps)
}

fn veth(options: &Options, mtu: ByteSize, transports: &[&str]) -> Result<Step, Error> {
    let placements = placements(options, &[Placement::OneCore, Placement::TwoCores]);
    let mut plan = plan(options, transports, placements)?;
    plan.latencies = latencies(
        options,
        &[
            (Phase::Fresh, LARGE),
            (Phase::Established, SMALL),
            (Phase::Established, LARGE),
        ],
    );
    Ok(Step {
        kind: Some(NetworkKind::Veth { mtu }),
        plan,
    })
}

/// Returns the plan for the link. Client and server always share a core, since its switch needs another.
fn link(options: &Options) -> Result<Step, Error> {
    let mut plan = plan(options, &OVER_LINK, vec![Placement::OneCore])?;
    plan.latencies = latencies(
        options,
        &[
            (Phase::Fresh, SMALL),
            (Phase::Resumed, SMALL),
            (Phase::Known, SMALL),
            (Phase::Established, SMALL),
        ],
    );
    let mtu = ByteSize::from_bytes(9000);
    Ok(Step {
        kind: Some(NetworkKind::Link(LinkSettings {
            delay: DELAY,
            mtu,
            ..LinkSettings::default()
        })),
        plan,
    })
}

fn latencies(options: &Options, situations: &[(Phase, ByteSize)]) -> Vec<Latency> {
    let established = options
        .iterations
        .unwrap_or(if options.quick { 500 } else { 2000 });
    let each = situations.iter();
    each.flat_map(|(phase, size)| run::latencies(&[*phase], &[*size], established))
        .collect()
}
