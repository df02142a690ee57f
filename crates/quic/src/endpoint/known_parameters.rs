//! The transport parameters of known peers. Most connections of an endpoint have those of the one before,
//! which are neither decoded nor encoded again.

use std::sync::Arc;

use weir_units::Duration;

use crate::config::TransportConfig;
use crate::connection::{Accepted, Connection};
use crate::recovery::Precision;
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, Side};

/// The last parameters that were decoded.
#[derive(Default)]
pub(super) struct DecodedParameters {
    last: Option<(Box<[u8]>, TransportParameters)>,
}

impl DecodedParameters {
    /// Decodes the remembered parameters of `sender`; `None` if they are not valid, which this endpoint
    /// has checked before.
    pub(super) fn decode(&mut self, sender: Side, encoded: &[u8]) -> Option<&TransportParameters> {
        let is_last = matches!(&self.last, Some((last, _)) if **last == *encoded);
        if !is_last {
            let decoded = TransportParameters::decode(sender, encoded).ok()?;
            self.last = Some((encoded.into(), decoded));
        }
        self.last.as_ref().map(|(_, decoded)| decoded)
    }
}

/// Our parameters in the form that peers remember, as last encoded.
#[derive(Default)]
pub(super) struct OwnParameters {
    last: Option<LastEncoded>,
}

struct LastEncoded {
    config: Arc<TransportConfig>,
    accepted: Accepted,
    tick: Duration,
    known_peers: bool,
    encoded: Box<[u8]>,
}

impl OwnParameters {
    /// Whether `remembered` are our parameters with these settings; `known_peers` says whether we take
    /// part in known peers.
    pub(super) fn are(
        &mut self,
        remembered: &[u8],
        side: Side,
        config: &Arc<TransportConfig>,
        accepted: Accepted,
        precision: &Precision,
        known_peers: bool,
    ) -> bool {
        let tick = precision.tick();
        let last = self.last.take().filter(|last| {
            Arc::ptr_eq(&last.config, config)
                && last.accepted == accepted
                && last.tick == tick
                && last.known_peers == known_peers
        });
        let last = self.last.insert(last.unwrap_or_else(|| {
            let own =
                Connection::parameters(config, accepted, precision, ConnectionId::EMPTY, None);
            let own = TransportParameters { known_peers, ..own };
            LastEncoded {
                config: config.clone(),
                accepted,
                tick,
                known_peers,
                encoded: own.to_remembered(side),
            }
        }));
        *last.encoded == *remembered
    }
}
