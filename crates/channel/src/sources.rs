//! Where the time and random numbers come from.

use tokio::time::Instant;
use weir_units::Time;

use crate::random::{NoRandomness, Random};

/// The time since the channel was built, and random numbers.
#[derive(Debug)]
pub(crate) struct Sources {
    epoch: Instant,
    pub(crate) random: Random,
}

impl Sources {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        Ok(Self {
            epoch: Instant::now(),
            random: Random::new()?,
        })
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.epoch.elapsed().into()
    }
}
