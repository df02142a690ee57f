//! The definition of an algorithm: a name, parameters, and a function that builds its controller.
//! The algorithms build on this module; the registry lists the algorithms.

mod error;
mod parameter;
mod spec;

use weir_units::{ByteSize, Rate};

pub use error::SpecError;
pub(crate) use parameter::Typed;
pub use parameter::{Parameter, Value};
pub use spec::AlgorithmSpec;

use crate::controller::Controller;

/// Parameters of every algorithm: caps from the first packet on (see
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

/// The context in which a controller is built.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Size of a full packet as the transport counts it; at least one byte is assumed.
    pub packet_size: ByteSize,
    /// Seed of the algorithm's random decisions. Equal seeds and events give equal decisions.
    pub seed: u64,
    /// Whether the transport spreads a window over the round trip, at a rate of its own or the
    /// controller's.
    pub is_paced: bool,
}

/// A registered algorithm.
#[derive(Debug)]
pub struct Algorithm {
    /// Its name.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// Its own parameters, without the common ones.
    pub(crate) own_parameters: &'static [Parameter],
    pub(crate) build: fn(&AlgorithmSpec, &Context) -> Box<dyn Controller>,
}

impl Algorithm {
    /// Returns all parameters, the algorithm's own first.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.own_parameters.iter().chain(&COMMON)
    }
}
