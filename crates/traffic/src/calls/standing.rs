//! Standalone servers, for clients on other machines.
//!
//! All transports listen on the same port number, one over TCP and one over UDP. Their servers with
//! early data use the next port, as in [`RemoteServer::at`](crate::calls::run::RemoteServer::at).

use std::net::SocketAddr;

use tokio::task::JoinSet;
use weir_net::tls::Identity;

use crate::calls::driver::{Drivers, Listening, Phase, ServerOptions};
use crate::calls::error::Error;
use crate::calls::run::RemoteServer;
use crate::calls::specification::TransportSpecification;

/// Listening servers.
pub struct RemoteServers {
    servers: Vec<(TransportSpecification, bool, Listening)>,
}

/// Binds the servers of all these transports. Must be called within a tokio runtime.
///
/// # Errors
/// A transport is unknown, does not support a setting, or the address is in use.
pub fn listen(
    drivers: &Drivers,
    specifications: &[TransportSpecification],
    bind: SocketAddr,
    identity: &Identity,
) -> Result<RemoteServers, Error> {
    let addresses = RemoteServer::at(bind);
    let mut servers = Vec::new();
    for specification in specifications {
        let driver = drivers.get(&specification.driver)?;
        let mut listen = |bind, early_data| {
            let listening = driver.listen(&ServerOptions {
                specification: specification.clone(),
                bind,
                identity: identity.clone(),
                early_data,
            })?;
            servers.push((specification.clone(), early_data, listening));
            Ok::<(), Error>(())
        };
        listen(addresses.full, false)?;
        if let Some(bind) = addresses
            .early_data
            .filter(|_| driver.supports(Phase::Resumed))
        {
            listen(bind, true)?;
        }
    }
    Ok(RemoteServers { servers })
}

impl RemoteServers {
    /// Returns each server's transport, whether it accepts early data, and its address.
    pub fn addresses(&self) -> impl Iterator<Item = (&TransportSpecification, bool, SocketAddr)> {
        self.servers
            .iter()
            .map(|(specification, early_data, listening)| {
                (specification, *early_data, listening.address)
            })
    }

    /// Serves until one of the servers fails. Must run on a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// That server's error.
    pub async fn serve(self) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        for (_, _, listening) in self.servers {
            tasks.spawn_local(listening.serve);
        }
        match tasks.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => Err(Error::transport("serving", error)),
            None => Ok(()),
        }
    }
}
