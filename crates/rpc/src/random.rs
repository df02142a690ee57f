//! Random numbers: IDs of traces and spans, jitter, and the choice between servers.

use std::sync::{Mutex, PoisonError};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use weir_quic::crypto::tls::provider;

use crate::trace::{SpanId, TraceContext, TraceId};

/// A generator that tasks share.
#[derive(Debug)]
pub(crate) struct Random(Mutex<ChaCha8Rng>);

/// The system returns no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Random {
    /// Creates a generator with a seed of the system.
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        let mut seed = [0; 32];
        let filled = provider().secure_random.fill(&mut seed);
        filled.map_err(|_| NoRandomness)?;
        Ok(Self(Mutex::new(ChaCha8Rng::from_seed(seed))))
    }

    /// Returns a random number.
    pub(crate) fn next(&self) -> u64 {
        self.generator().next_u64()
    }

    /// Returns the ID of a new span.
    pub(crate) fn span_id(&self) -> SpanId {
        loop {
            if let Some(id) = SpanId::from_bytes(self.next().to_be_bytes()) {
                return id;
            }
        }
    }

    /// Returns the first hop of a new trace, which nobody records.
    pub(crate) fn trace(&self) -> TraceContext {
        loop {
            let mut bytes = [0; 16];
            self.generator().fill_bytes(&mut bytes);
            if let Some(id) = TraceId::from_bytes(bytes) {
                return TraceContext::new(id, self.span_id(), false);
            }
        }
    }

    fn generator(&self) -> std::sync::MutexGuard<'_, ChaCha8Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
