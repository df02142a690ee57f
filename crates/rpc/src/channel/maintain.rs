//! Keeps a channel's servers: resolves the name, and has a task per server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use weir_units::{Duration, Time};

use super::{Shared, subchannel};

/// How long a resolver may take.
const RESOLVE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Runs for as long as the channel.
pub(super) async fn run(shared: Arc<Shared>) {
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
        let now = shared.now();
        let random = shared.random.next();
        let mut added = Vec::new();
        let mut current = Vec::new();
        {
            let state = &mut *shared.state();
            state.resolution.on_answer(now, answer, random);
            current.extend_from_slice(state.resolution.addresses());
            added.extend(state.pool.set_addresses(&current));
        }
        running.retain(|address, task| {
            let stays = current.contains(address);
            if !stays {
                task.abort();
            }
            stays
        });
        for address in added {
            let task = tasks.spawn(subchannel::run(shared.clone(), address));
            running.insert(address, task);
        }
        shared.changed.send_replace(());
        while tasks.try_join_next().is_some() {}
    }
}

/// Waits until the name is to be resolved, which a failed connection brings forward.
async fn wait_until_due(shared: &Shared) {
    loop {
        let next = shared.state().resolution.next();
        let wait = next.since(shared.now());
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
