//! Keeps the servers: resolves the name, and has a task per server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use weir_units::{Duration, Time};

use crate::connect;
use crate::protocol::Protocol;
use crate::servers::Shared;

/// How long a resolver may take.
const RESOLVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Runs for as long as there is a handle to the servers.
pub(crate) async fn run<P: Protocol>(shared: Arc<Shared<P>>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<SocketAddr, AbortHandle> = HashMap::new();
    loop {
        wait_until_due(&shared).await;
        let answer = timeout(RESOLVE_TIMEOUT, shared.resolver.resolve()).await;
        let answer = match answer {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("the resolver does not answer".to_owned()),
        };
        if let Err(error) = &answer {
            tracing::warn!(%error, resolver = ?shared.resolver, "no addresses");
        }
        let current = {
            let mut resolution = shared.resolution();
            let random = shared.sources.random.next();
            resolution.on_answer(shared.sources.now(), answer, random);
            resolution.addresses().to_vec()
        };
        let (added, _) = shared.update(|pool| pool.set_addresses(&current));
        running.retain(|address, task| {
            let stays = current.contains(address);
            if !stays {
                task.abort();
            }
            stays
        });
        for address in added {
            let task = tasks.spawn(connect::run(shared.clone(), address));
            running.insert(address, task);
        }
        while tasks.try_join_next().is_some() {}
    }
}

/// Waits until the name is to be resolved, which a failed connection brings forward.
async fn wait_until_due<P: Protocol>(shared: &Shared<P>) {
    loop {
        let next = shared.resolution().next();
        let wait = next.since(shared.sources.now());
        if wait.is_zero() {
            return;
        }
        // Later than any timer is never.
        let is_never = next == Time::MAX;
        let wait = wait.min(Duration::from_secs(3600));
        tokio::select! {
            () = sleep(wait.into()), if !is_never => {}
            () = shared.resolve.notified() => {}
        }
    }
}
