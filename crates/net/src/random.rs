//! Randomness for engines.

use crate::error::EndpointError;

/// A seed that nobody can guess.
pub(crate) fn seed() -> Result<[u8; 32], EndpointError> {
    let mut seed = [0; 32];
    weir_quic::crypto::tls::provider()
        .secure_random
        .fill(&mut seed)
        .map_err(|_| EndpointError::Random)?;
    Ok(seed)
}
