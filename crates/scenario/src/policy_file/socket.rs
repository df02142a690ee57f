//! Options of the sender's socket.

use weir_policy::{Dscp, SocketOptions};
use weir_scenario_derive::Keys;
use weir_units::Duration;

use super::condition;
use crate::document::Reported;
use crate::schema::{Accepts, Fields};

/// The keys of a rule for the sender's socket.
#[derive(Keys)]
pub(super) struct SocketKeys {
    /// The least retransmission time-out of the sender's socket. Only for `weir enforce --cgroup`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "the socket's")]
    min_rto: Option<Duration>,
    /// The longest time for which the sender's socket delays an acknowledgment of what it receives. Only
    /// for `weir enforce --cgroup`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "the socket's")]
    max_ack_delay: Option<Duration>,
    /// The DSCP of the packets that the sender's socket sends. Only for `weir enforce --cgroup`.
    #[key(accepts = SET_DSCP, absent = "the socket's", read = condition::value(at))]
    set_dscp: Option<Dscp>,
}

/// The accepted value of the key `set_dscp`.
const SET_DSCP: Accepts =
    Accepts::Other("a name such as \"af41\" or \"ef\", or a number from 0 to 63");

/// Reads [`SocketKeys`].
pub(super) fn socket_options(fields: &Fields<'_>) -> Result<SocketOptions, Reported> {
    let keys = SocketKeys::read_keys(fields, ())?;
    if fields.has("pass") {
        let names = ["min_rto", "max_ack_delay", "set_dscp"];
        if let Some(key) = names.iter().find(|key| fields.has(key)) {
            return Err(fields.error_position(key).conflict(
                "flows that pass keep their sockets' options",
                format!("remove `{key}`, or write `congestion` instead of `pass`"),
            ));
        }
    }
    Ok(SocketOptions {
        min_rto: keys.min_rto,
        max_ack_delay: keys.max_ack_delay,
        set_dscp: keys.set_dscp,
    })
}
