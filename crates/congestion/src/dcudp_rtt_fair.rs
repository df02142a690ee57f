//! [`dcudp-proportional`](crate::dcudp_proportional) with equal shares for unequal round trips: our own.
//!
//! Three rules of that control favour short round trips:
//!
//! - The rate grows by a part of a packet per round trip in each round trip: by 1 / RTT² over time.
//! - Each round trip with a mark reduces it, by the same part: the loss over time is in proportion to 1 /
//!   RTT, so that shares are too. A short round trip often has no packet, and then no mark.
//! - One packet per round trip is the least. At 50 us that is a quarter of a gigabit per second.
//!
//! Here all three use a reference instead of the round trip where that is shorter. Senders whose round
//! trips are at most the reference behave alike. The price is the speed of convergence: they take as long
//! as one with a round trip of the reference.

use weir_units::Duration;

use crate::algorithm::{Algorithm, Parameter, Typed};
use crate::dcudp::{CAPACITY, FREEZE};
use crate::dcudp_proportional::{AVERAGE, DRAIN, G, KEEP, PATIENCE, Pace, Proportional};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dcudp-rtt-fair",
    summary: "dcudp-proportional with equal shares for round trips up to a reference",
    own_parameters: &PARAMETERS,
    build: |spec, context| {
        let pace = Pace {
            increment: spec.get(&INCREMENT),
            increment_of: &INCREMENT,
            reference: spec.get(&REFERENCE),
        };
        Box::new(Proportional::new(ALGORITHM.name, pace, spec, context))
    },
};

const PARAMETERS: [Parameter; 9] = [
    CAPACITY.parameter(),
    REFERENCE.parameter(),
    G.parameter(),
    INCREMENT.parameter(),
    KEEP.parameter(),
    AVERAGE.parameter(),
    DRAIN.parameter(),
    PATIENCE.parameter(),
    FREEZE.parameter(),
];

const REFERENCE: Typed<Duration> = Typed {
    name: "reference",
    doc: "the round-trip time that shorter ones are treated as",
    default: Duration::from_millis(1),
    min: Duration::from_micros(1),
    max: Duration::from_secs(1),
};

const INCREMENT: Typed<f64> = Typed {
    name: "increment",
    doc: "by how many packets per reference the rates grow in one",
    default: 0.5,
    min: 0.001,
    max: 1000.0,
};
