//! Random seeds for engines.

use crate::error::EndpointError;

/// Returns an unpredictable seed.
pub(crate) fn seed() -> Result<[u8; 32], EndpointError> {
    let mut seed = [0; 32];
    weir_quic::crypto::tls::provider()
        .secure_random
        .fill(&mut seed)
        .map_err(|_| EndpointError::Random)?;
    Ok(seed)
}
