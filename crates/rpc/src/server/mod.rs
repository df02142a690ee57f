//! A server: methods, and how their calls run.

mod builder;
mod call;
mod context;
mod handler;
mod messages;
mod panics;
mod response;
mod serve;
mod stats;

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use weir_channel::Random;
use weir_net::Endpoint;

use crate::wire::Limits;

pub use builder::{ServerBuilder, ServerError};
pub use context::Context;
pub use messages::{RequestReceiver, ResponseSender, SendError};
pub use stats::ServerStats;

use handler::Methods;
use stats::Counters;

/// Answers the calls of connections. Clones are handles to the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    methods: Methods,
    limits: Limits,
    /// A permit per handler that may run.
    permits: Arc<Semaphore>,
    concurrency: usize,
    counters: Counters,
    /// The endpoints being served; `None` after a shutdown.
    endpoints: Mutex<Option<Vec<Endpoint>>>,
    random: Random,
}
