//! A server that shuts down.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use weir_h3::{Client, Error};
use weir_net::{ConnectionError, Executed};

use crate::support::{World, fetch, get, run};

/// A router whose requests wait to be let go.
fn slow() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (beginning, going) = (begun.clone(), go.clone());
    let handler = on_get(move || async move {
        beginning.notify_one();
        going.notified().await;
        "done"
    });
    let router = Router::new()
        .route("/slow", handler)
        .route("/quick", on_get(|| async { "quick" }));
    (router, begun, go)
}

/// Begins a request that waits to be let go.
fn begin_slow(client: &Client) -> JoinHandle<Result<Bytes, Error>> {
    let client = client.clone();
    tokio::spawn(async move { fetch(&client, get("/slow")).await })
}

#[test]
fn running_requests_end_and_new_ones_are_refused() {
    run(async {
        let (router, begun, go) = slow();
        let world = World::new(router);
        let client = world.client().await;
        let idle = world.client().await;
        assert_eq!(fetch(&idle, get("/quick")).await.unwrap(), "quick");
        let running = begin_slow(&client);
        begun.notified().await;
        let server = world.server.clone();
        let shutdown = tokio::spawn(async move { server.shutdown(Duration::from_secs(30)).await });
        client.draining().await;
        let error = client.send(get("/quick")).await.unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
        // The connection without requests closes at once.
        let closed = idle.connection().closed().await;
        assert_eq!(closed.peer_code(), Some(0x100), "{closed}");
        let newcomer = (world.client_endpoint)
            .connect(world.server_endpoint.local_address(), "localhost")
            .unwrap()
            .await;
        assert!(newcomer.is_err());
        go.notify_one();
        assert_eq!(running.await.unwrap().unwrap(), "done");
        shutdown.await.unwrap().unwrap();
        let closed = client.connection().closed().await;
        assert_eq!(closed.peer_code(), Some(0x100), "{closed}");
    });
}

#[test]
fn what_takes_too_long_is_given_up() {
    run(async {
        let (router, begun, _go) = slow();
        let world = World::new(router);
        let client = world.client().await;
        let running = begin_slow(&client);
        begun.notified().await;
        let passed = world.server.shutdown(Duration::from_millis(20)).await;
        assert!(passed.is_err());
        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.executed(), Executed::Maybe, "{error}");
        let closed = client.connection().closed().await;
        assert_eq!(closed.peer_code(), Some(0x100), "{closed}");
    });
}

#[test]
fn an_endpoint_that_shuts_down_drains_its_server() {
    run(async {
        let (router, begun, go) = slow();
        let world = World::new(router);
        let client = world.client().await;
        let running = begin_slow(&client);
        begun.notified().await;
        let endpoint = world.server_endpoint.clone();
        let shutdown =
            tokio::spawn(async move { endpoint.shutdown(Duration::from_secs(30)).await });
        client.draining().await;
        go.notify_one();
        assert_eq!(running.await.unwrap().unwrap(), "done");
        shutdown.await.unwrap().unwrap();
    });
}

#[test]
fn a_client_that_shuts_down_finishes_its_requests() {
    run(async {
        let (router, begun, go) = slow();
        let world = World::new(router);
        let client = world.client().await;
        let running = begin_slow(&client);
        begun.notified().await;
        let endpoint = world.client_endpoint.clone();
        let shutdown =
            tokio::spawn(async move { endpoint.shutdown(Duration::from_secs(30)).await });
        client.connection().draining().await;
        let error = client.send(get("/quick")).await.unwrap_err();
        let is_draining = matches!(error, Error::Connection(ConnectionError::Draining { .. }));
        assert!(is_draining || error.executed() == Executed::No, "{error}");
        go.notify_one();
        assert_eq!(running.await.unwrap().unwrap(), "done");
        shutdown.await.unwrap().unwrap();
    });
}
