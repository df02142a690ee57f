//! Channels whose servers drain, restart, or are not there yet; and known peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tonic::Status;
use tonic::service::Routes;
use weir_grpc::{APPLICATION_PROTOCOL, Channel, Peer, Server};
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::test_service_server::TestServiceServer;
use weir_grpc_testing::proto::{Empty, SimpleRequest, SimpleResponse};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Endpoint, KnownClientsConfig};

use crate::scripted::Scripted;
use crate::support::{builder, client_endpoint, identity, loopback, run, serve, until};

/// Starts a server at an address.
fn start(address: SocketAddr, identity: &Identity, service: Scripted) -> Server {
    let server = Server::bind(address, ServerTls::new(identity.clone())).unwrap();
    serve(&server, Routes::new(TestServiceServer::new(service)));
    server
}

/// A service that counts its calls.
fn counting() -> (Arc<AtomicUsize>, Scripted) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let service = Scripted::unary(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(SimpleResponse::default()) }
    });
    (count, service)
}

#[test]
fn what_a_draining_server_refuses_is_called_elsewhere() {
    run(async {
        let identity = identity();
        let (first_calls, service) = counting();
        let first = start(loopback(), &identity, service);
        let (second_calls, service) = counting();
        let second = start(loopback(), &identity, service);
        let endpoint = client_endpoint(identity.fingerprint());
        let addresses = [first.local_address(), second.local_address()];
        let channel = builder(addresses).connect(&endpoint).unwrap();
        let channel = Channel::from(channel);
        let stopped = Arc::new(AtomicBool::new(false));
        let mut workers = JoinSet::new();
        for _ in 0..4 {
            let (mut client, stopped) = (TestServiceClient::new(channel.clone()), stopped.clone());
            workers.spawn(async move {
                let mut calls = 0;
                while !stopped.load(Ordering::SeqCst) {
                    client.unary_call(SimpleRequest::default()).await?;
                    calls += 1;
                }
                Ok::<usize, Status>(calls)
            });
        }
        until(|| first_calls.load(Ordering::SeqCst) > 100).await;
        until(|| second_calls.load(Ordering::SeqCst) > 100).await;
        first.shutdown(Duration::from_secs(30)).await.unwrap();
        let before = second_calls.load(Ordering::SeqCst);
        until(|| second_calls.load(Ordering::SeqCst) > before + 100).await;
        stopped.store(true, Ordering::SeqCst);
        let calls = workers.join_all().await;
        let calls: usize = calls.into_iter().map(Result::unwrap).sum();
        // None was executed twice.
        let executed = first_calls.load(Ordering::SeqCst) + second_calls.load(Ordering::SeqCst);
        assert_eq!(calls, executed);
    });
}

#[test]
fn a_draining_server_ends_its_calls() {
    run(async {
        let identity = identity();
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (beginning, going) = (begun.clone(), go.clone());
        let service = Scripted::unary(move |_| {
            let (begun, go) = (beginning.clone(), going.clone());
            async move {
                begun.notify_one();
                go.notified().await;
                Ok(SimpleResponse::default())
            }
        });
        let server = start(loopback(), &identity, service);
        let endpoint = client_endpoint(identity.fingerprint());
        let channel = builder([server.local_address()]).connect(&endpoint);
        let mut client = TestServiceClient::new(Channel::from(channel.unwrap()));
        let call = tokio::spawn(async move { client.unary_call(SimpleRequest::default()).await });
        begun.notified().await;
        let shutdown = server.shutdown(Duration::from_secs(30));
        let (done, ()) = tokio::join!(shutdown, async { go.notify_one() });
        done.unwrap();
        call.await.unwrap().unwrap();
    });
}

#[test]
fn a_call_waits_for_its_server_if_it_is_told_to() {
    run(async {
        let identity = identity();
        let socket = std::net::UdpSocket::bind(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        drop(socket);
        let endpoint = client_endpoint(identity.fingerprint());
        let channel = builder([address]).wait_for_ready(true).connect(&endpoint);
        let channel = Channel::from(channel.unwrap());
        let mut client = TestServiceClient::new(channel.clone());
        let call = tokio::spawn(async move { client.empty_call(Empty {}).await });
        until(|| channel.http().stats().connections_failed > 0).await;
        let _server = start(address, &identity, Scripted::default());
        call.await.unwrap().unwrap();
    });
}

#[test]
fn calls_go_on_after_a_restart_at_the_same_address() {
    run(async {
        let identity = identity();
        let server = start(loopback(), &identity, Scripted::default());
        let address = server.local_address();
        let endpoint = client_endpoint(identity.fingerprint());
        let channel = builder([address]).wait_for_ready(true).connect(&endpoint);
        let mut client = TestServiceClient::new(Channel::from(channel.unwrap()));
        client.empty_call(Empty {}).await.unwrap();
        server.shutdown(Duration::from_secs(30)).await.unwrap();
        drop(server);
        // The socket closes with the last task of the endpoint.
        let server = loop {
            match Server::bind(address, ServerTls::new(identity.clone())) {
                Ok(server) => break server,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let service = TestServiceServer::new(Scripted::default());
        serve(&server, Routes::new(service));
        client.empty_call(Empty {}).await.unwrap();
    });
}

#[test]
fn a_known_peer_has_no_handshake() {
    run(async {
        let identity = identity();
        let tls = ClientTls::pinned(identity.fingerprint());
        let tls = tls
            .application_protocols([APPLICATION_PROTOCOL])
            .known_peers(true);
        let credentials = tls.build().unwrap();
        let endpoint = Endpoint::builder().client(credentials.clone());
        let endpoint = endpoint.bind(loopback()).unwrap();
        let tls = ServerTls::new(identity).known_peers(KnownClientsConfig::default());
        let server = Server::bind(loopback(), tls).unwrap();
        let service = Scripted::unary(|request| async move {
            let peer = request.extensions().get::<Peer>().cloned();
            let peer = peer.ok_or_else(|| Status::internal("no peer"))?;
            Ok(SimpleResponse {
                username: peer.connection().unwrap().is_known_peer().to_string(),
                ..SimpleResponse::default()
            })
        });
        serve(&server, Routes::new(TestServiceServer::new(service)));
        for is_known in [false, true, true] {
            let channel = builder([server.local_address()]).connect(&endpoint);
            let mut client = TestServiceClient::new(Channel::from(channel.unwrap()));
            let response = client.unary_call(SimpleRequest::default()).await.unwrap();
            assert_eq!(response.get_ref().username, is_known.to_string());
            until(|| credentials.known_servers().held == 1).await;
        }
        assert_eq!(credentials.known_servers().begun, 2);
    });
}
