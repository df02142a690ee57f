//! The parameters of the proportional rate control.

use crate::algorithm::{Parameter, Typed};
use crate::dcudp::{CAPACITY, FREEZE};

pub(super) const PARAMETERS: [Parameter; 8] = [
    CAPACITY.parameter(),
    G.parameter(),
    INCREMENT.parameter(),
    KEEP.parameter(),
    AVERAGE.parameter(),
    DRAIN.parameter(),
    PATIENCE.parameter(),
    FREEZE.parameter(),
];

pub(crate) const G: Typed<f64> = Typed {
    name: "g",
    doc: "the weight of a new marked fraction in the smoothed one",
    default: 0.125,
    min: 0.001,
    max: 1.0,
};

pub(super) const INCREMENT: Typed<f64> = Typed {
    name: "increment",
    doc: "by how many packets per smallest round-trip time the rates grow in one",
    default: 0.05,
    min: 0.001,
    max: 1000.0,
};

pub(crate) const KEEP: Typed<f64> = Typed {
    name: "keep",
    doc: "no mark takes Rate_max below this part of what is delivered",
    default: 0.95,
    min: 0.0,
    max: 1.0,
};

pub(crate) const AVERAGE: Typed<f64> = Typed {
    name: "average",
    doc: "over how many smallest round-trip times deliveries are averaged, eight packets at least",
    default: 4.0,
    min: 1.0,
    max: 1000.0,
};

pub(crate) const DRAIN: Typed<f64> = Typed {
    name: "drain",
    doc: "in how many smallest round-trip times what waits in the queue beyond one is to leave it; 0: never",
    default: 8.0,
    min: 0.0,
    max: 1e6,
};

pub(crate) const PATIENCE: Typed<u64> = Typed {
    name: "patience",
    doc: "after so many round trips without a mark the increment doubles with each",
    default: 4,
    min: 1,
    max: 1_000_000,
};
