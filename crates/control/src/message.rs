//! Whole messages as bytes, in gRPC's encoding: for tools that record, replay or forge the messages of
//! agents and controllers.

use prost::Message;
use weir_sed::{SwitchReport, WindowOrder};

use crate::translate::{self, DecodeError};
use crate::v1::{FromAgent, FromController, from_agent, from_controller};

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MessageError {
    /// They are not protobuf.
    #[error("not protobuf: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A field is invalid.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// Returns the reports in an agent's message; none for a hello.
///
/// # Errors
/// [`MessageError`].
pub fn reports(bytes: &[u8]) -> Result<Vec<SwitchReport>, MessageError> {
    let Some(from_agent::Message::Reports(message)) = FromAgent::decode(bytes)?.message else {
        return Ok(Vec::new());
    };
    let reports = message.reports.into_iter().map(translate::report);
    Ok(reports.collect::<Result<_, _>>()?)
}

/// Returns the orders in a controller's message; none for a welcome.
///
/// # Errors
/// [`MessageError`].
pub fn orders(bytes: &[u8]) -> Result<Vec<WindowOrder>, MessageError> {
    let Some(from_controller::Message::Orders(message)) = FromController::decode(bytes)?.message
    else {
        return Ok(Vec::new());
    };
    let orders = message.orders.into_iter().map(translate::order);
    Ok(orders.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_units::{ByteSize, Duration};
    use weir_wire::FlowKey;

    use super::*;
    use crate::v1::{Orders, Reports};

    fn message() -> Vec<u8> {
        let report = SwitchReport::Opened {
            flow: FlowKey::UNSPECIFIED,
            port: 3,
            age: Duration::from_nanos(5),
            demand: Some(weir_sed::Demand {
                size: ByteSize::from_bytes(7),
                within: Duration::from_nanos(9),
            }),
        };
        let reports = vec![translate::to_report(&report); 3];
        let reports = Reports { reports, beat: 1 };
        let message = Some(from_agent::Message::Reports(reports));
        FromAgent { message }.encode_to_vec()
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(reports(&message()).map(|reports| reports.len()), Ok(3));
        let reported = Orders {
            term: 1,
            orders: vec![translate::to_order(&WindowOrder::Renew)],
            beat: 0,
        };
        let message = Some(from_controller::Message::Orders(reported));
        let bytes = FromController { message }.encode_to_vec();
        assert_eq!(orders(&bytes), Ok(vec![WindowOrder::Renew]));
    }

    proptest! {
        /// No input breaks the decoder.
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
        ) {
            let _ = (reports(&bytes), orders(&bytes));
            let mut changed = message();
            for (place, byte) in changes {
                let place = place.index(changed.len());
                changed[place] = byte;
            }
            let _ = (reports(&changed), orders(&changed));
        }
    }
}
