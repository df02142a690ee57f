//! DCUDP's rate control, and the parts that [`dcudp_proportional`](crate::dcudp_proportional) shares
//! with it. Both keep two rates in packets per second: `Rate_data`, the sending rate, and `Rate_max`,
//! the limit of its fast recovery. Both have a lock that a sent packet releases (`freeze`), and decide
//! once per round trip.
//!
//! | file | content |
//! |---|---|
//! | `figure4` | the paper's rate control (Ye, Mhamdi and Hamdi, CloudNet 2014, Figure 4) in all its interpretations |
//! | `rates` | the two rates and their bounds |
//! | `round` | sums over the acknowledgments of a round trip |

mod figure4;
pub(crate) mod rates;
pub(crate) mod round;

pub(crate) use figure4::ALGORITHM;

use weir_units::{Duration, Rate};

use crate::algorithm::Typed;

/// Section IV-A.3: both rates begin as C / PktSize.
pub(crate) const CAPACITY: Typed<Rate> = Typed {
    name: "capacity",
    doc: "the rate of the path's narrowest link, with which both rates begin",
    default: Rate::from_gbps(1),
    min: Rate::from_bits_per_second(1_000),
    max: Rate::from_gbps(10_000),
};

pub(crate) const FREEZE: Typed<bool> = Typed {
    name: "freeze",
    doc: "after a reduction nothing reduces again before a packet has been sent",
    default: true,
    min: false,
    max: true,
};

/// The initial RTT, and the smallest accepted RTT.
pub(crate) const INITIAL_RTT: Duration = Duration::from_micros(100);
pub(crate) const SHORTEST_RTT: Duration = Duration::from_nanos(100);
