//! A server that shuts down.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use futures_util::FutureExt;
use http::Version;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::support::{World, for_http1, get, http1_on, mirror, read, run};

/// A router whose requests wait to be let go.
fn slow() -> (Router, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (beginning, going) = (begun.clone(), go.clone());
    let handler = on_get(move || async move {
        beginning.add_permits(1);
        going.acquire().await.unwrap().forget();
        "done"
    });
    (mirror().route("/slow", handler), begun, go)
}

#[test]
fn running_requests_end() {
    run(async {
        let (router, begun, go) = slow();
        let world = Arc::new(World::new(router));
        let mut running = tokio::task::JoinSet::new();
        for version in [Version::HTTP_3, Version::HTTP_2, Version::HTTP_11] {
            let world = world.clone();
            running.spawn(async move { world.fetch(version, get("/slow")).await });
        }
        begun.acquire_many(3).await.unwrap().forget();
        let server = world.server.clone();
        let shutdown = tokio::spawn(async move { server.shutdown(Duration::from_secs(30)).await });
        // Newcomers are refused.
        while TcpStream::connect(world.address()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!shutdown.is_finished());
        go.add_permits(3);
        while let Some(response) = running.join_next().await {
            let response = response.unwrap();
            assert_eq!(response.body(), "done");
            let is_last = response.headers().get("connection");
            assert_eq!(is_last.is_some(), response.version() == Version::HTTP_11);
        }
        shutdown.await.unwrap().unwrap();
    });
}

#[test]
fn what_takes_too_long_is_given_up() {
    run(async {
        let (router, begun, _go) = slow();
        let world = World::new(router);
        let mut client = world.http2().await;
        let running = tokio::spawn(async move { client.send_request(get("/slow")).await });
        begun.acquire().await.unwrap().forget();
        assert!(
            world
                .server
                .shutdown(Duration::from_millis(20))
                .await
                .is_err()
        );
        assert!(running.await.unwrap().is_err());
        assert_eq!(world.server.stats().cancelled, 1);
    });
}

#[test]
fn a_connection_that_the_kernel_has_accepted_is_served() {
    run(async {
        let world = World::bound(|builder| builder);
        let early = TcpStream::connect(world.address()).await.unwrap();
        let serving = world.server.serve(mirror());
        let mut serving = std::pin::pin!(serving);
        assert!(serving.as_mut().now_or_never().is_none());
        let shutdown = world.server.shutdown(Duration::from_secs(30));
        let request = async {
            let stream = world.secure(early, "http/1.1").await;
            let mut client = http1_on(stream).await;
            let request = for_http1(get("/a"));
            read(client.send_request(request).await.unwrap()).await
        };
        let ((), shutdown, response) = tokio::join!(serving, shutdown, request);
        shutdown.unwrap();
        assert_eq!(response.headers()["connection"], "close");
    });
}

/// Sends requests by HTTP/2 until the connection takes none; returns how many were answered.
async fn load_http2(world: Arc<World>) -> u64 {
    let mut client = world.http2().await;
    let mut answered = 0;
    while client.ready().await.is_ok() {
        match client.send_request(get("/a")).await {
            Ok(response) => drop(read(response).await),
            // It was not sent, or the GOAWAY says that it was not looked at.
            Err(error) if error.is_canceled() || format!("{error:?}").contains("GoAway") => break,
            Err(error) => panic!("{error:?}"),
        }
        answered += 1;
    }
    answered
}

/// Sends requests by HTTP/1.1 until a response says that it is the last one.
async fn load_http1(world: Arc<World>) -> u64 {
    let mut client = world.http1().await;
    let mut answered = 0;
    loop {
        client.ready().await.unwrap();
        let response = client.send_request(for_http1(get("/a"))).await.unwrap();
        answered += 1;
        let is_last = response.headers().contains_key("connection");
        read(response).await;
        if is_last {
            return answered;
        }
    }
}

/// Sends requests by HTTP/3 until the connection takes none.
async fn load_http3(world: Arc<World>) -> u64 {
    let client = world.http3().await;
    let mut answered = 0;
    loop {
        match client.send(get("/a")).await {
            Ok(response) => drop(read(response).await),
            Err(error) if error.executed() == weir_net::Executed::No => return answered,
            Err(error) => panic!("{error:?}"),
        }
        answered += 1;
    }
}

#[test]
fn a_shutdown_under_load_loses_nothing() {
    run(async {
        let world = Arc::new(World::new(mirror()));
        let mut loads = tokio::task::JoinSet::new();
        for _ in 0..4 {
            loads.spawn(load_http1(world.clone()));
            loads.spawn(load_http2(world.clone()));
            loads.spawn(load_http3(world.clone()));
        }
        crate::support::until(|| world.server.stats().requests > 1000).await;
        let shutdown = world.server.shutdown(Duration::from_secs(30)).await;
        let answered: u64 = loads.join_all().await.into_iter().sum();
        shutdown.unwrap();
        assert_eq!(answered, world.server.stats().requests);
    });
}
