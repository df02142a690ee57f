//! The layout of the connection IDs that an endpoint issues.
//!
//! Several engines, each an [`Endpoint`](crate::Endpoint) with its own socket, can share a port. A
//! packet's destination connection ID names its engine: the ID's first byte modulo the number of
//! engines. All other bits are random, so that an ID reveals nothing else, and the IDs that clients
//! choose for their first packets spread over all engines. A kernel's packet filter can compute it.
//!
//! The second and third byte are random, or the generation of the endpoint, by which a successor at the same
//! port recognizes the IDs of its predecessor.

use std::num::NonZeroU8;

use rand_core::Rng;

use crate::ConnectionId;

/// The length of an endpoint's connection IDs, and the engine that they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionIdLayout {
    length: usize,
    engine: u8,
    engines: NonZeroU8,
    generation: Option<u16>,
}

impl ConnectionIdLayout {
    /// IDs of `length` bytes, 4 to 20, of an endpoint with one engine.
    pub const fn new(length: usize) -> Self {
        Self {
            length,
            engine: 0,
            engines: NonZeroU8::MIN,
            generation: None,
        }
    }

    /// The same IDs, which name the engine with index `engine` of `engines`.
    ///
    /// # Panics
    /// Where `engine` is not less than `engines`.
    #[must_use]
    pub const fn of_engine(self, engine: u8, engines: NonZeroU8) -> Self {
        assert!(engine < engines.get(), "there is no such engine");
        Self {
            engine,
            engines,
            ..self
        }
    }

    /// The same IDs, whose second and third byte are `generation`, in network order, or random.
    #[must_use]
    pub const fn of_generation(self, generation: Option<u16>) -> Self {
        Self { generation, ..self }
    }

    /// Returns the length in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Whether the endpoint has several engines.
    pub(crate) const fn is_shared(&self) -> bool {
        self.engines.get() > 1
    }

    /// Returns the index of the engine that this ID names; `None` for an empty one.
    fn named(&self, id: &[u8]) -> Option<u8> {
        id.first().map(|first| *first % self.engines)
    }

    /// Returns the index of the engine that this ID names, if that is another one.
    pub(crate) fn other_engine(&self, id: &[u8]) -> Option<usize> {
        let named = self.named(id)?;
        (named != self.engine).then_some(usize::from(named))
    }

    /// Generates a random ID that names this engine.
    pub(crate) fn generate(&self, rng: &mut impl Rng) -> ConnectionId {
        let mut bytes = [0; ConnectionId::MAX_LENGTH];
        let bytes = &mut bytes[..self.length.min(ConnectionId::MAX_LENGTH)];
        rng.fill_bytes(bytes);
        if let [first, ..] = bytes
            && self.is_shared()
        {
            // Of the values that name this engine, one at random.
            let values = u16::from((u8::MAX - self.engine) / self.engines) + 1;
            let value = u16::from(*first) % values;
            *first = value as u8 * self.engines.get() + self.engine;
        }
        if let ([_, second, third, ..], Some(generation)) = (&mut *bytes, self.generation) {
            [*second, *third] = generation.to_be_bytes();
        }
        ConnectionId::new(bytes).unwrap_or(ConnectionId::EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha12Rng;
    use rand_core::SeedableRng;

    use super::*;

    proptest! {
        #[test]
        fn an_id_names_its_engine(engines: NonZeroU8, engine: u8, length in 4..=20_usize, seed: u64) {
            let engine = engine % engines;
            let layout = ConnectionIdLayout::new(length).of_engine(engine, engines);
            let id = layout.generate(&mut ChaCha12Rng::seed_from_u64(seed));
            prop_assert_eq!(id.len(), length);
            prop_assert_eq!(layout.named(id.as_bytes()), Some(engine));
            prop_assert_eq!(layout.other_engine(id.as_bytes()), None);
            let successor = layout.of_generation(Some(seed as u16));
            let id = successor.generate(&mut ChaCha12Rng::seed_from_u64(seed));
            prop_assert_eq!(&id.as_bytes()[1..3], (seed as u16).to_be_bytes());
            prop_assert_eq!(layout.named(id.as_bytes()), Some(engine));
            let stranger = ConnectionIdLayout::new(length);
            prop_assert_eq!(stranger.other_engine(id.as_bytes()), None);
        }
    }

    #[test]
    fn ids_use_every_first_byte_that_names_the_engine() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let engines = NonZeroU8::new(3).unwrap();
        for (engine, values) in [(0, 86), (1, 85), (2, 85)] {
            let layout = ConnectionIdLayout::new(8).of_engine(engine, engines);
            let mut seen = [false; 256];
            for _ in 0..20_000 {
                seen[usize::from(layout.generate(&mut rng).as_bytes()[0])] = true;
            }
            assert_eq!(seen.iter().filter(|seen| **seen).count(), values);
        }
    }
}
