//! Whole tests between a server and a client in one process, over loopback.

use std::future::pending;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_units::{ByteSize, Duration};

use super::*;
use crate::tls::{Fingerprint, Identity};

const LIMIT: Duration = Duration::from_secs(20);

fn parameters(transport: Transport, direction: Direction) -> Parameters {
    Parameters {
        transport,
        direction,
        extent: Extent::Bytes(ByteSize::from_bytes(3_000_001)),
        parallel: 3,
        congestion: None,
        packet_size: None,
        profile: None,
        rate: None,
        congestion_on_loss: false,
        keyed: false,
    }
}

async fn server(timeout: Duration) -> Server {
    let options = ServerOptions {
        bind: "127.0.0.1:0".parse().unwrap(),
        identity: Identity::self_signed(["localhost"]).unwrap(),
        timeout,
        interval: Duration::ZERO,
        metrics: None,
        key: None,
        policy: None,
    };
    Server::bind(options).await.unwrap()
}

fn client(server: SocketAddr, pin: Fingerprint, parameters: Parameters) -> ClientOptions {
    ClientOptions {
        host: server.ip().to_string(),
        port: server.port(),
        pin: Some(pin),
        key: None,
        policy: None,
        parameters,
        interval: Duration::from_secs(1),
        timeout: LIMIT,
    }
}

/// Runs a client and ignores its events.
async fn run_client(options: &ClientOptions) -> Result<Measurement, Error> {
    super::run(options, &mut |_| {}).await
}

/// Serves one test and ignores its events.
async fn serve_one(server: Server) -> Result<(), Error> {
    server.serve_one(&mut |_| {}).await
}

/// Returns the sender's and the receiver's outcome of a client's test.
fn sent_and_received(client: &Measurement) -> (&Outcome, &Outcome) {
    match client.start.parameters.direction {
        Direction::Upload => (&client.ours, &client.theirs),
        Direction::Download => (&client.theirs, &client.ours),
    }
}

fn bytes(outcome: &Outcome) -> u64 {
    outcome.streams.iter().map(|stream| stream.bytes).sum()
}

/// Runs one test; returns the client's and the server's measurement.
async fn run(parameters: Parameters) -> (Measurement, Measurement) {
    let server = server(LIMIT).await;
    let options = client(server.address(), server.fingerprint(), parameters);
    let mut theirs = None;
    let mut keep = |event| {
        if let ServerEvent::Ended { measurement, .. } = event {
            theirs = Some(*measurement);
        }
    };
    let (ours, served) = tokio::join!(run_client(&options), server.serve_one(&mut keep));
    served.unwrap();
    (ours.unwrap(), theirs.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_arrives_over_every_transport_in_both_directions() {
    for transport in Transport::ALL {
        for direction in [Direction::Upload, Direction::Download] {
            let (client, server) = run(parameters(transport, direction)).await;
            let (sent, received) = sent_and_received(&client);
            for outcome in [sent, received] {
                assert_eq!(bytes(outcome), 3_000_001, "{transport} {direction:?}");
                assert_eq!(outcome.streams.len(), 3);
                assert!(!outcome.elapsed.is_zero());
            }
            let path = sent.streams[0].path.unwrap();
            // DCUDP has a rate instead of a window.
            let is_dcudp = transport == Transport::Dcudp;
            assert_eq!(path.max_cwnd.is_none(), is_dcudp);
            assert_eq!(path.last.pacing.is_some(), is_dcudp);
            assert!(!sent.congestion.is_empty());
            assert_eq!(server.ours, client.theirs);
            assert_eq!(server.theirs, client.ours);
            let streams = client.intervals.iter().flat_map(|it| &it.streams);
            let intervals: u64 = streams.map(|stream| stream.bytes).sum();
            assert_eq!(intervals, 3_000_001);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_by_time_ends_by_itself() {
    for transport in Transport::ALL {
        let mut parameters = parameters(transport, Direction::Download);
        parameters.extent = Extent::Time(Duration::from_millis(200));
        let (client, _) = run(parameters).await;
        let (sent, received) = sent_and_received(&client);
        assert!(bytes(received) > 0);
        assert_eq!(bytes(sent), bytes(received));
        assert!(sent.elapsed >= Duration::from_millis(200));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_congestion_control_asked_for_is_used() {
    for (transport, name) in [
        (Transport::Tcp, "reno"),
        (Transport::Dcquic, "newreno"),
        (Transport::Dcudp, "dctcp"),
    ] {
        for direction in [Direction::Upload, Direction::Download] {
            let mut parameters = parameters(transport, direction);
            parameters.congestion = Some(name.to_owned());
            parameters.packet_size = Some(ByteSize::from_bytes(1400));
            let (client, _) = run(parameters).await;
            assert_eq!(sent_and_received(&client).0.congestion, name);
        }
    }
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_is_refused() {
    for transport in [Transport::TcpTls, Transport::Dcquic] {
        let server = server(LIMIT).await;
        let wrong = Identity::self_signed(["localhost"]).unwrap().fingerprint();
        let options = client(
            server.address(),
            wrong,
            parameters(transport, Direction::Upload),
        );
        let (ours, theirs) = tokio::join!(run_client(&options), serve_one(server));
        assert!(
            matches!(ours, Err(Error::WrongPin { .. })),
            "{transport}: {ours:?}"
        );
        assert!(theirs.is_err());
    }
}

#[tokio::test]
async fn a_server_refuses_a_second_test_and_survives_a_lost_client() {
    let server = server(LIMIT).await;
    let (address, pin) = (server.address(), server.fingerprint());
    let serving = tokio::spawn(async move { server.serve_until(pending(), &mut |_| {}).await });
    let mut long = parameters(Transport::Tcp, Direction::Upload);
    long.extent = Extent::Time(Duration::from_secs(60));
    let long = client(address, pin, long);
    let (started, wait) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(async move {
        let mut started = Some(started);
        let mut hear = move |_: Event<'_>| {
            if let Some(started) = started.take() {
                started.send(()).unwrap();
            }
        };
        super::run(&long, &mut hear).await
    });
    wait.await.unwrap();
    let short = client(address, pin, parameters(Transport::Tcp, Direction::Upload));
    let refused = run_client(&short).await.unwrap_err();
    assert!(
        refused.to_string().contains("another test is running"),
        "{refused}"
    );

    running.abort();
    let measurement = loop {
        match run_client(&short).await {
            Err(Error::Refused(_)) => tokio::task::yield_now().await,
            other => break other.unwrap(),
        }
    };
    assert_eq!(bytes(&measurement.theirs), 3_000_001);
    serving.abort();
}

#[tokio::test]
async fn a_server_that_is_to_stop_ends_the_running_test_and_refuses_others() {
    let server = server(LIMIT).await;
    let (address, pin) = (server.address(), server.fingerprint());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let stop = async { stopped.await.unwrap() };
        server.serve_until(stop, &mut |_| {}).await;
    });
    let mut long = parameters(Transport::Dcquic, Direction::Download);
    long.extent = Extent::Time(Duration::from_secs(60));
    let long = client(address, pin, long);
    let mut stop = Some(stop);
    let (started, wait) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(async move {
        let mut started = Some(started);
        let mut hear = move |_: Event<'_>| {
            if let (Some(stop), Some(started)) = (stop.take(), started.take()) {
                stop.send(()).unwrap();
                started.send(()).unwrap();
            }
        };
        super::run(&long, &mut hear).await
    });
    wait.await.unwrap();
    let late = client(address, pin, parameters(Transport::Tcp, Direction::Upload));
    let refused = loop {
        let refused = run_client(&late).await.unwrap_err().to_string();
        // The server may not have been told yet.
        if !refused.contains("another test") {
            break refused;
        }
    };
    assert!(refused.contains("shuts down"), "{refused}");
    assert!(!serving.is_finished());
    running.abort();
    serving.await.unwrap();
}

#[tokio::test]
async fn invalid_and_silent_clients_do_not_block_the_server() {
    let server = server(Duration::from_millis(300)).await;
    let (address, pin) = (server.address(), server.fingerprint());
    let serving = tokio::spawn(async move { server.serve_until(pending(), &mut |_| {}).await });
    let silent = TcpStream::connect(address).await.unwrap();
    for garbage in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        b"weirperf\x03C",
        &[0xff; 4096],
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may close before all is written.
        let _ = stream.write_all(garbage).await;
    }
    let options = client(
        address,
        pin,
        parameters(Transport::Tcp, Direction::Download),
    );
    assert!(run_client(&options).await.is_ok());
    drop(silent);
    serving.abort();
}

#[tokio::test]
async fn a_client_of_another_version_receives_a_refusal() {
    let server = server(LIMIT).await;
    let address = server.address();
    let serving = tokio::spawn(async move { server.serve_until(pending(), &mut |_| {}).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    let greeting = [b"weirperf\x04C".as_slice(), &[0; 16], b"\0\0\0\x02{}"].concat();
    stream.write_all(&greeting).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains("refused") && answer.contains("version 4 meets"),
        "{answer}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_missing_or_silent_server_is_reported() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let pin = Identity::self_signed(["localhost"]).unwrap().fingerprint();
    let options = client(unused, pin, parameters(Transport::Tcp, Direction::Upload));
    let error = run_client(&options).await.unwrap_err();
    assert!(
        error.to_string().contains("is `weir perf server` running"),
        "{error}"
    );

    // A server that accepts and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = client(silent.local_addr().unwrap(), pin, options.parameters);
    options.timeout = Duration::from_millis(100);
    let error = run_client(&options).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}
