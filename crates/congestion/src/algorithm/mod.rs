//! What an algorithm is: a name, parameters, and how its controller is built. The algorithms are above
//! this, and the registry, which lists them, above these.

mod error;
mod parameter;
mod spec;

use weir_units::{ByteSize, Rate};

pub use error::SpecError;
pub(crate) use parameter::Typed;
pub use parameter::{Parameter, Value};
pub use spec::AlgorithmSpec;

use crate::controller::Controller;

/// Parameters that every algorithm takes: a limit from the first packet on (see
/// [`CappedController`](crate::CappedController)).
static COMMON: [Parameter; 2] = [MAX_WINDOW.parameter(), MAX_RATE.parameter()];

const MAX_WINDOW: Typed<ByteSize> = Typed {
    name: "max_window",
    doc: "the window never exceeds this",
    default: ByteSize::MAX,
    min: ByteSize::from_bytes(1),
    max: ByteSize::MAX,
};

const MAX_RATE: Typed<Rate> = Typed {
    name: "max_rate",
    doc: "the pacing rate never exceeds this",
    default: Rate::MAX,
    min: Rate::from_bits_per_second(1_000),
    max: Rate::MAX,
};

/// What a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The size of a full packet, as the transport counts it; at least one byte is assumed.
    pub packet_size: ByteSize,
    /// The seed of whatever the algorithm randomizes. Equal seeds and events give equal decisions.
    pub seed: u64,
}

/// An algorithm that the registry knows.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Its own parameters, without those that all algorithms share.
    pub(crate) own_parameters: &'static [Parameter],
    pub(crate) build: fn(&AlgorithmSpec, &Context) -> Box<dyn Controller>,
}

impl Algorithm {
    /// All its parameters, its own ones first.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.own_parameters.iter().chain(&COMMON)
    }
}
