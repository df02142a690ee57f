//! The ACK-frequency extension (draft-ietf-quic-ack-frequency-14): the peer's requests for our
//! ACKs, and our requests for its ACKs.

use weir_units::{Duration, Time};

use super::handshake::FEW_PACKETS;
use super::{Connection, min_ack_delay};
use crate::frame::AckFrequency;
use crate::transport_parameters::TransportParameters;
use crate::{Code, Space, TransportError};

/// RFC 9000, section 18.2: the upper bound of `max_ack_delay`, exclusive.
const DELAY_LIMIT: Duration = Duration::from_millis(1 << 14);

impl Connection {
    /// Records from the peer's parameters whether it supports the extension.
    pub(super) fn note_ack_frequency_support(&mut self, peer: &TransportParameters) {
        if self.config.ack_frequency
            && let Some(least) = peer.min_ack_delay
        {
            let (own, reordering) = (peer.ack_delay_bound(), self.config.packet_threshold);
            self.control.ack_requests.enable(least, own, reordering);
        }
    }

    /// Handles an ACK_FREQUENCY frame.
    pub(super) fn on_ack_frequency(
        &mut self,
        request: &AckFrequency,
    ) -> Result<(), TransportError> {
        let delay = Duration::from_micros(request.max_ack_delay);
        if !(min_ack_delay(&self.config)..DELAY_LIMIT).contains(&delay) {
            let reason = "a maximum ACK delay that was not offered";
            return Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason));
        }
        if self.received[Space::Data as usize].on_request(request) {
            self.counters.ack_requests += 1;
        }
        Ok(())
    }

    /// Handles an ACK of packets of the data space.
    pub(super) fn after_data_ack(&mut self, now: Time) {
        self.note_acked_keys(now);
        if self.recovery.largest_acked(Space::Data) > Some(FEW_PACKETS) {
            self.want_spare_ids();
        }
        let requests = &mut self.control.ack_requests;
        requests.consider(now, &self.paths[0]);
        if let Some(delay) = requests.longest_delay() {
            self.recovery.set_peer_max_ack_delay(delay, delay);
        }
    }
}
