//! A channel: calls to servers behind a name.

mod builder;
mod call;
mod error;
mod exchange;
mod protocol;
mod retry;
mod stats;
mod stream;

use std::sync::Arc;

use weir_channel::Servers;
use weir_units::Duration;

use crate::wire::Limits;

pub use builder::ChannelBuilder;
pub use call::{Call, Response};
pub use error::CallError;
pub use stats::ChannelStats;
pub use stream::{RequestSender, ResponseReceiver, StreamClosed};

use protocol::Rpc;
use stats::Counters;

/// Makes calls to servers behind a name. Clones are handles to the same channel.
///
/// Connections are opened ahead, and again when they are lost, for as long as there is a handle.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Servers<Rpc>,
    settings: Settings,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Settings {
    limits: Limits,
    deadline: Option<Duration>,
    wait_for_ready: bool,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("servers", &self.shared.servers)
            .finish_non_exhaustive()
    }
}
