//! Several servers: names, balancing, lost and returning connections, draining.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use weir_rpc::wire::APPLICATION_PROTOCOL;
use weir_rpc::{
    Balancing, CallError, Channel, Code, Context, Executed, RequestReceiver, ResolveError,
    Resolver, Resolving, ResponseSender, RetryConfig, Server, ServerBuilder, ServerState,
};

use crate::support::{
    Running, channel_to, client_endpoint, loopback, ready, run, server_endpoint, start, start_at,
    until,
};

fn naming(name: &'static str) -> ServerBuilder {
    Server::builder().method("name", move |_, _| async move { Ok(name) })
}

async fn name(channel: &Channel) -> Bytes {
    channel.call("name").unary("").await.unwrap().body
}

#[test]
fn round_robin_spreads_calls_evenly() {
    run(async {
        let servers = [naming("a"), naming("b"), naming("c")].map(start);
        let channel = channel_to(&servers).balancing(Balancing::RoundRobin);
        let channel = channel.connect(&client_endpoint()).unwrap();
        ready(&channel, 3).await;
        for _ in 0..30 {
            name(&channel).await;
        }
        for server in &servers {
            assert_eq!(server.server.stats().executed, 10);
        }
    });
}

#[test]
fn least_loaded_avoids_a_server_whose_calls_hang() {
    run(async {
        let hanging = Server::builder().method("name", |_, _| async {
            std::future::pending::<()>().await;
            Ok(Bytes::new())
        });
        let servers = [start(hanging), start(naming("quick"))];
        let channel = channel_to(&servers).connect(&client_endpoint()).unwrap();
        ready(&channel, 2).await;
        let executed = |index: usize| servers[index].server.stats().executed;
        let mut calls = Vec::new();
        for number in 1..=60 {
            calls.push(tokio::spawn(channel.call("name").unary("")));
            until(|| executed(0) + executed(1) == number).await;
            until(|| channel.servers()[1].outstanding == 0).await;
        }
        // The first one stays; none follows it.
        assert_eq!(executed(0), 1);
        assert_eq!(channel.servers()[0].outstanding, 1);
        calls.iter().for_each(|call| call.abort());
    });
}

#[test]
fn pick_first_connects_to_one_server_and_goes_on_with_the_next() {
    run(async {
        let first = start(naming("first"));
        let second = start(naming("second"));
        let channel = channel_to([&first, &second]).balancing(Balancing::PickFirst);
        let channel = channel.connect(&client_endpoint()).unwrap();
        ready(&channel, 1).await;
        assert_eq!(name(&channel).await, "first");
        assert_eq!(channel.servers()[1].state, ServerState::Idle);
        let address = first.address;
        stop(first).await;
        until(|| channel.servers()[1].state == ServerState::Ready).await;
        assert_eq!(name(&channel).await, "second");
        // It goes back.
        let _first = start_again(address, || naming("first")).await;
        until(|| channel.servers()[0].state == ServerState::Ready).await;
        assert_eq!(name(&channel).await, "first");
        until(|| channel.servers()[1].state == ServerState::Idle).await;
    });
}

/// Stops a server and frees its port.
async fn stop(server: Running) -> SocketAddr {
    let address = server.address;
    server
        .server
        .shutdown(Duration::from_secs(10))
        .await
        .unwrap();
    address
}

/// Starts a server at an address that a stopped one may still hold for a moment.
async fn start_again(address: SocketAddr, builder: impl Fn() -> ServerBuilder) -> Running {
    while std::net::UdpSocket::bind(address).is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start_at(address, builder())
}

#[test]
fn without_a_server_calls_fail_at_once_or_wait() {
    run(async {
        let gone = stop(start(naming("gone"))).await;
        let channel = Channel::to_addresses([gone]).server_name("localhost");
        let channel = channel.connect_timeout(Duration::from_millis(100));
        let channel = channel.connect(&client_endpoint()).unwrap();
        let error = channel.call("name").unary("").await.unwrap_err();
        assert!(matches!(error, CallError::NoServer(_)), "{error}");
        assert_eq!(
            (error.code(), error.executed()),
            (Code::Unavailable, Executed::No)
        );
        let waiting = tokio::spawn(channel.call("name").wait_for_ready(true).unary(""));
        let limited = channel.call("name").wait_for_ready(true);
        let error = limited
            .deadline(Duration::from_millis(10))
            .unary("")
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.executed()),
            (Code::DeadlineExceeded, Executed::No)
        );
        let _server = start_again(gone, || naming("back")).await;
        assert_eq!(waiting.await.unwrap().unwrap().body, "back");
    });
}

#[derive(Clone, Debug, Default)]
struct Names {
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    asked: Arc<AtomicUsize>,
}

impl Resolver for Names {
    fn resolve(&self) -> Resolving<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let addresses = self.addresses.lock().unwrap().clone();
        Box::pin(async {
            if addresses.is_empty() {
                return Err(ResolveError("no such name".to_owned()));
            }
            Ok(addresses)
        })
    }
}

#[test]
fn a_name_is_resolved_again() {
    run(async {
        let [first, second] = [naming("first"), naming("second")].map(start);
        let names = Names::default();
        let channel = Channel::resolved_by(names.clone())
            .server_name("localhost")
            .resolve_interval(Duration::from_millis(20))
            .connect(&client_endpoint())
            .unwrap();
        let error = channel.call("name").unary("").await.unwrap_err();
        assert_eq!(error, CallError::NoServer("no such name".to_owned()));
        names.addresses.lock().unwrap().push(first.address);
        let call = channel.call("name").wait_for_ready(true);
        assert_eq!(call.unary("").await.unwrap().body, "first");
        // A server that is not one any more gets no calls.
        *names.addresses.lock().unwrap() = vec![second.address];
        until(|| channel.servers()[0].address == second.address).await;
        ready(&channel, 1).await;
        assert_eq!(name(&channel).await, "second");
        // The last good answer stays.
        names.addresses.lock().unwrap().clear();
        until(|| channel.resolve_error().is_some()).await;
        assert_eq!(name(&channel).await, "second");
    });
}

#[test]
fn a_lost_connection_has_the_name_resolved() {
    run(async {
        let [first, second] = [naming("first"), naming("second")].map(start);
        let names = Names::default();
        names.addresses.lock().unwrap().push(first.address);
        let channel = Channel::resolved_by(names.clone())
            .server_name("localhost")
            .resolve_interval(Duration::ZERO)
            .connect(&client_endpoint())
            .unwrap();
        assert_eq!(name(&channel).await, "first");
        assert_eq!(names.asked.load(Ordering::SeqCst), 1);
        *names.addresses.lock().unwrap() = vec![second.address];
        first.endpoint.close(99, b"killed");
        let call = channel.call("name").wait_for_ready(true).idempotent();
        assert_eq!(call.unary("").await.unwrap().body, "second");
        assert!(names.asked.load(Ordering::SeqCst) >= 2);
    });
}

#[test]
fn the_system_resolves_names() {
    run(async {
        let server = start(naming("here"));
        let name = format!("localhost:{}", server.address.port());
        let channel = Channel::builder(name).connect(&client_endpoint()).unwrap();
        let call = channel.call("name").wait_for_ready(true);
        assert_eq!(call.unary("").await.unwrap().body, "here");
    });
}

#[test]
fn connections_are_opened_ahead_and_again() {
    run(async {
        let server = start(naming("one"));
        let channel = channel_to([&server]).connect(&client_endpoint()).unwrap();
        // No call is needed.
        ready(&channel, 1).await;
        let address = server.address;
        stop(server).await;
        until(|| channel.servers()[0].state != ServerState::Ready).await;
        let server = start_again(address, || naming("two")).await;
        ready(&channel, 1).await;
        assert_eq!(name(&channel).await, "two");
        assert_eq!(channel.stats().connections, 2);
        // Nor does a handle stay behind.
        drop(channel);
        until(|| server.endpoint.stats().connections == 0).await;
    });
}

#[test]
fn calls_that_wait_survive_the_restart_of_the_only_server() {
    run(async {
        let server = start(naming("one"));
        let channel = channel_to([&server]).wait_for_ready(true);
        let channel = channel.connect(&client_endpoint()).unwrap();
        assert_eq!(name(&channel).await, "one");
        let address = stop(server).await;
        let waiting = tokio::spawn(channel.call("name").unary(""));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        let _server = start_again(address, || naming("two")).await;
        assert_eq!(waiting.await.unwrap().unwrap().body, "two");
    });
}

#[test]
fn calls_that_run_are_answered_while_a_server_drains() {
    run(async {
        let gate = Arc::new(Notify::new());
        let opened = gate.clone();
        let echo =
            move |_: Context, mut requests: RequestReceiver, mut responses: ResponseSender| {
                let gate = gate.clone();
                async move {
                    while let Some(request) = requests.next().await? {
                        responses.send(request).await?;
                    }
                    gate.notified().await;
                    Ok(())
                }
            };
        let old = start(naming("old").bidirectional("echo", echo));
        let new = start(naming("new"));
        let channel = channel_to([&old, &new]).balancing(Balancing::PickFirst);
        let channel = channel.connect(&client_endpoint()).unwrap();
        let (mut requests, mut responses) = channel.call("echo").streaming().await.unwrap();
        requests.send("before").await.unwrap();
        assert_eq!(responses.next().await.unwrap().unwrap(), "before");
        let server = old.server.clone();
        let draining = tokio::spawn(async move { server.shutdown(Duration::from_secs(30)).await });
        // New calls go elsewhere as soon as the client knows.
        while name(&channel).await != "new" {
            tokio::task::yield_now().await;
        }
        requests.send("after").await.unwrap();
        assert_eq!(responses.next().await.unwrap().unwrap(), "after");
        requests.finish().await.unwrap();
        assert!(!draining.is_finished());
        opened.notify_one();
        assert_eq!(responses.next().await, Ok(None));
        draining.await.unwrap().unwrap();
    });
}

#[test]
fn a_server_that_was_shut_down_serves_nobody() {
    run(async {
        let server = naming("gone").build().unwrap();
        server.shutdown(Duration::from_secs(1)).await.unwrap();
        let endpoint = server_endpoint(loopback(), APPLICATION_PROTOCOL);
        server.serve(&endpoint).await;
        let connecting = client_endpoint().connect(endpoint.local_address(), "localhost");
        connecting.unwrap().await.unwrap_err();
    });
}

#[test]
fn a_rolling_restart_under_load_fails_no_call() {
    const ROUNDS: usize = 2;
    run(async {
        let executions = Arc::new(AtomicUsize::new(0));
        let builder = {
            let executions = executions.clone();
            move || {
                let executions = executions.clone();
                Server::builder().method("work", move |_: Context, _: Bytes| {
                    executions.fetch_add(1, Ordering::SeqCst);
                    async {
                        tokio::time::sleep(Duration::from_millis(3)).await;
                        Ok(Bytes::new())
                    }
                })
            }
        };
        let mut servers: Vec<_> = (0..3).map(|_| start(builder())).collect();
        // Calls that a draining server refuses cost no budget.
        let retry = RetryConfig {
            budget_ratio: 0.0,
            budget_burst: 0,
            ..RetryConfig::default()
        };
        let channel = channel_to(&servers)
            .retry(retry)
            .connect(&client_endpoint());
        let channel = channel.unwrap();
        ready(&channel, 3).await;
        let stop_load = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (channel, stop) = (channel.clone(), stop_load.clone());
                tokio::spawn(async move {
                    let mut calls = 0;
                    while stop.load(Ordering::SeqCst) == 0 {
                        let call = channel.call("work").deadline(Duration::from_secs(20));
                        call.unary("").await.unwrap();
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            for index in 0..3 {
                let before = executions.load(Ordering::SeqCst);
                until(|| executions.load(Ordering::SeqCst) > before + 50).await;
                let address = stop(servers.remove(index)).await;
                servers.insert(index, start_again(address, &builder).await);
                ready(&channel, 3).await;
            }
        }
        stop_load.store(1, Ordering::SeqCst);
        let mut calls = 0;
        for caller in callers {
            calls += caller.await.unwrap();
        }
        // Each exactly once.
        assert_eq!(executions.load(Ordering::SeqCst), calls);
        assert_eq!(channel.stats().connections as usize, 3 + 3 * ROUNDS);
    });
}
