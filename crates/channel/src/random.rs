//! Random numbers: jitter, the choice between servers, identifiers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use weir_quic::crypto::tls::provider;

/// A generator that tasks share.
#[derive(Debug)]
pub struct Random(Mutex<ChaCha8Rng>);

/// The system returns no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Random {
    /// Creates a generator with a seed of the system.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn new() -> Result<Self, NoRandomness> {
        let mut seed = [0; 32];
        let filled = provider().secure_random.fill(&mut seed);
        filled.map_err(|_| NoRandomness)?;
        Ok(Self(Mutex::new(ChaCha8Rng::from_seed(seed))))
    }

    /// Returns a random number.
    pub fn next(&self) -> u64 {
        self.generator().next_u64()
    }

    /// Returns random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.generator().fill_bytes(&mut bytes);
        bytes
    }

    fn generator(&self) -> MutexGuard<'_, ChaCha8Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
