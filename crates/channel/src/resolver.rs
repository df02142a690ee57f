//! Names to addresses.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

/// The answer of a [`Resolver`].
pub type Resolving<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, ResolveError>> + Send + 'a>>;

/// Finds the servers of a channel, in order of preference.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Returns the servers' current addresses.
    fn resolve(&self) -> Resolving<'_>;
}

/// Why there are no addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResolveError(pub String);

/// Resolves a name as the system does, by `getaddrinfo`.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    /// The name and the port, as in `kv.example:4433`.
    pub name: String,
}

impl Resolver for SystemResolver {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async {
            let addresses = tokio::net::lookup_host(&self.name).await;
            let error = |error| ResolveError(format!("{}: {error}", self.name));
            addresses.map(Iterator::collect).map_err(error)
        })
    }
}

/// Addresses that do not change.
impl Resolver for Vec<SocketAddr> {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async { Ok(self.clone()) })
    }
}
