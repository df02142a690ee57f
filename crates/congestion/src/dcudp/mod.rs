//! DCUDP's rate controls, and what they have in common: two rates in packets per second, of which
//! `Rate_data` is what packets leave at and `Rate_max` is what it may come back to fast, a lock that a
//! sent packet opens (`freeze`), and one verdict per round trip.
//!
//! | file | what it holds |
//! |---|---|
//! | `figure4` | the paper's (Ye, Mhamdi and Hamdi, CloudNet 2014, Figure 4) in all its readings |
//! | `proportional` | ours: by the marked fraction, what is delivered and what waits in the queue |
//! | `rates` | the two rates and their bounds |
//! | `round` | what the acknowledgments of a round trip say, put together |

pub(crate) mod figure4;
pub(crate) mod proportional;
mod rates;
mod round;

use weir_units::{Duration, Rate};

use crate::algorithm::Typed;

/// Section IV-A.3: both rates begin as C / PktSize.
const CAPACITY: Typed<Rate> = Typed {
    name: "capacity",
    doc: "the rate of the path's narrowest link, with which both rates begin",
    default: Rate::from_gbps(1),
    min: Rate::from_bits_per_second(1_000),
    max: Rate::from_gbps(10_000),
};

const FREEZE: Typed<bool> = Typed {
    name: "freeze",
    doc: "after a reduction nothing reduces again before a packet has been sent",
    default: true,
    min: false,
    max: true,
};

/// The round-trip time before one is known, and the smallest that is believed.
const INITIAL_RTT: Duration = Duration::from_micros(100);
const SHORTEST_RTT: Duration = Duration::from_nanos(100);
