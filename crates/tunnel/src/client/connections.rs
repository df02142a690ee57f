//! Several DCQUIC connections to one server, and which of them gets a stream.

use std::collections::hash_map::RandomState;
use std::future::{Future, ready};
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir_channel::{BackoffConfig, ChannelError, Picked, Servers, ServersBuilder};
use weir_net::Endpoint;
use weir_units::Duration;

use super::ClientOptions;
use super::link::{TunnelLink, TunnelProtocol};
use crate::destination::Destination;
use crate::transport::STREAMS;

/// The waits between attempts to reach a server.
const RECONNECT: BackoffConfig = BackoffConfig {
    first: Duration::from_millis(20),
    longest: Duration::from_secs(5),
};

/// The pause between looks for an answer.
const ANSWER_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Channels to the same name: each has a connection to each server behind it.
#[derive(Debug)]
pub(super) struct Connections {
    channels: Vec<Channel>,
    /// Counts choices; only spreads them.
    chosen: AtomicU64,
    hash: RandomState,
}

#[derive(Debug)]
struct Channel {
    servers: Servers<TunnelProtocol>,
    /// The streams that are open.
    load: Arc<AtomicUsize>,
}

/// The place of a stream: while it is kept the stream counts as open.
#[derive(Debug)]
pub(super) struct Place {
    picked: Picked<TunnelLink>,
    load: Arc<AtomicUsize>,
}

impl Place {
    pub(super) fn link(&self) -> &TunnelLink {
        self.picked.link()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    pub(super) fn new(
        endpoint: &Endpoint,
        via: &Destination,
        options: &ClientOptions,
    ) -> Result<Self, ChannelError> {
        let channel = |_| {
            let mut builder = ServersBuilder::to_name(via.to_string()).reconnect(RECONNECT);
            if let Some(name) = &options.server_name {
                builder = builder.server_name(name);
            }
            Ok(Channel {
                servers: builder.connect(endpoint, TunnelProtocol)?,
                load: Arc::default(),
            })
        };
        let channels = (0..options.connections.get()).map(channel);
        Ok(Self {
            channels: channels.collect::<Result<_, ChannelError>>()?,
            chosen: AtomicU64::new(0),
            hash: RandomState::new(),
        })
    }

    /// Returns whether a connection has been silent for too long.
    pub(super) fn is_one_suspicious(&self) -> bool {
        self.links().any(|link| link.is_suspicious())
    }

    /// Begins a doubt about all connections.
    pub(super) fn begin_doubt(&self) {
        self.links().for_each(|link| link.begin_doubt());
    }

    fn links(&self) -> impl Iterator<Item = TunnelLink> + '_ {
        let channels = self.channels.iter();
        channels.flat_map(|channel| channel.servers.links())
    }

    /// Waits for a connection that has answered since the doubt began.
    pub(super) async fn answered(&self) -> Place {
        loop {
            for channel in &self.channels {
                if let Some(picked) = channel.pick_ready().await
                    && picked.link().has_answered().await
                {
                    return channel.place(picked);
                }
            }
            tokio::time::sleep(ANSWER_PAUSE).await;
        }
    }

    /// Returns a connection that is ready and answers: the less loaded one of two at random, or else any.
    pub(super) async fn ready(&self) -> Option<Place> {
        let (one, other) = self.two();
        let (one, other) = if self.channels[other].load() < self.channels[one].load() {
            (other, one)
        } else {
            (one, other)
        };
        let rest = (0..self.channels.len()).filter(|index| *index != one && *index != other);
        for index in [one, other].into_iter().chain(rest) {
            let channel = &self.channels[index];
            if channel.load() >= STREAMS as usize {
                continue;
            }
            let picked = channel.pick_ready().await;
            if let Some(picked) = picked.filter(|picked| !picked.link().is_suspicious()) {
                return Some(channel.place(picked));
            }
        }
        None
    }

    /// Waits for a connection that is ready; where there is no other way, one that does not answer will do.
    ///
    /// # Errors
    /// Why the server cannot be reached by now.
    pub(super) async fn wait(&self, has_other_way: bool) -> Result<Place, String> {
        let (one, other) = self.two();
        let pick = |index: usize| {
            let channel = &self.channels[index];
            let picking = channel.servers.pick(&[], false);
            async move { picking.await.map(|picked| channel.place(picked)) }
        };
        let picked = first_of(pick(one), pick(other)).await;
        let place = picked.map_err(|error| error.to_string())?;
        if has_other_way && place.link().is_suspicious() {
            return Err("the server does not answer".to_owned());
        }
        Ok(place)
    }

    /// Returns each connection's state, and its open streams.
    pub(super) fn channels(&self) -> impl Iterator<Item = (&Servers<TunnelProtocol>, usize)> {
        let channels = self.channels.iter();
        channels.map(|channel| (&channel.servers, channel.load()))
    }

    /// Returns two different indices, if there are two.
    fn two(&self) -> (usize, usize) {
        let count = self.channels.len();
        let number = self.chosen.fetch_add(1, Ordering::Relaxed);
        let random = self.hash.hash_one(number) as usize;
        let one = random % count;
        let other = (one + 1 + (random >> 32) % (count - 1).max(1)) % count;
        (one, other)
    }
}

impl Channel {
    fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Returns a connection that is ready, without waiting for one.
    async fn pick_ready(&self) -> Option<Picked<TunnelLink>> {
        tokio::select! {
            biased;
            picked = self.servers.pick(&[], false) => picked.ok(),
            () = ready(()) => None,
        }
    }

    fn place(&self, picked: Picked<TunnelLink>) -> Place {
        self.load.fetch_add(1, Ordering::Relaxed);
        Place {
            picked,
            load: self.load.clone(),
        }
    }
}

/// Returns the first success of two, or the last failure.
async fn first_of<T, E>(
    one: impl Future<Output = Result<T, E>>,
    other: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    tokio::select! {
        result = &mut one => match result {
            Err(_) => other.await,
            result => result,
        },
        result = &mut other => match result {
            Err(_) => one.await,
            result => result,
        },
    }
}
