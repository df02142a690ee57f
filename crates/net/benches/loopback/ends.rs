//! The two ends of a flow.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weir_net::dcudp::{DcudpClient, DcudpConfig, DcudpListener, DcudpStream, PreSharedKey};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Endpoint, TransportConfig};
use weir_units::{ByteSize, Rate};

use super::{PACKET, SPAN, Transport, processor_time, raw};

/// Bytes per write and read.
const BLOCK: usize = 128 * 1024;
/// How long the end of a connection may take.
const FAREWELL: weir_units::Duration = weir_units::Duration::from_secs(1);
/// Received packets per read, where they are not copied.
const CHUNKS: usize = 64;

fn dcudp(transport: Transport) -> DcudpConfig {
    // More than loopback carries: only the window limits it.
    let mut config = DcudpConfig::new(Rate::from_gbps(100));
    if transport == Transport::DcudpKeyed {
        let key = PreSharedKey::new(&[7; 32]).unwrap();
        config.transport.shared_key = Some(Arc::new(key));
    }
    config
}

fn dcquic() -> TransportConfig {
    TransportConfig {
        packet_size: Some(ByteSize::from_bytes(PACKET as u64)),
        ..TransportConfig::data_center()
    }
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

/// Prints the listening address, then bytes, seconds and CPU time of the received data.
pub(super) fn receive(transport: Transport) {
    let report = |bytes: u64, span: Duration| {
        println!("{bytes} {} {}", span.as_secs_f64(), processor_time());
    };
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    if transport == Transport::Raw {
        let (bytes, span) = raw::receive(|address| println!("{address} -"));
        return report(bytes, span);
    }
    run(async {
        let (bytes, span) = match transport {
            Transport::Dcquic => {
                let identity = Identity::self_signed(["localhost"]).unwrap();
                let fingerprint = identity.fingerprint();
                let tls = ServerTls::new(identity).build().unwrap();
                let builder = Endpoint::builder().transport(dcquic()).server(tls);
                let endpoint = builder.bind(loopback).unwrap();
                println!("{} {fingerprint}", endpoint.local_address());
                let connection = endpoint.accept().await.unwrap().await.unwrap();
                let received = drain(connection.accept_uni().await.unwrap()).await;
                connection.close(0, b"");
                endpoint.wait_idle(FAREWELL).await.unwrap();
                received
            }
            Transport::Tcp => {
                let listener = tokio::net::TcpListener::bind(loopback).await.unwrap();
                println!("{} -", listener.local_addr().unwrap());
                drain(listener.accept().await.unwrap().0).await
            }
            Transport::Raw | Transport::Dcudp | Transport::DcudpCopied | Transport::DcudpKeyed => {
                let listener: DcudpListener =
                    DcudpListener::bind(loopback, dcudp(transport)).unwrap();
                println!("{} -", listener.local_address());
                let mut stream = listener.accept().await.unwrap();
                let received = match transport {
                    Transport::DcudpCopied => drain(&mut stream).await,
                    _ => drain_in_place(&mut stream).await,
                };
                stream.close().await.unwrap();
                received
            }
        };
        report(bytes, span);
    });
}

/// Sends until the time is over and prints its CPU time.
pub(super) fn send(transport: Transport, address: &str, fingerprint: &str) {
    let address: SocketAddr = address.parse().unwrap();
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    if transport == Transport::Raw {
        raw::send(address);
        return println!("{}", processor_time());
    }
    run(async {
        match transport {
            Transport::Dcquic => {
                let pin = fingerprint.parse().unwrap();
                let tls = ClientTls::pinned(pin).build().unwrap();
                let builder = Endpoint::builder().transport(dcquic()).client(tls);
                let endpoint = builder.bind(loopback).unwrap();
                let connecting = endpoint.connect(address, "localhost").unwrap();
                let connection = connecting.await.unwrap();
                fill(connection.open_uni().await.unwrap()).await;
                connection.closed().await;
            }
            Transport::Tcp => {
                fill(tokio::net::TcpStream::connect(address).await.unwrap()).await;
            }
            Transport::Raw | Transport::Dcudp | Transport::DcudpCopied | Transport::DcudpKeyed => {
                let client = DcudpClient::bind(loopback, dcudp(transport)).unwrap();
                let mut stream: DcudpStream = client.connect(address).await.unwrap();
                match transport {
                    Transport::DcudpCopied => fill(&mut stream).await,
                    _ => fill_in_place(&mut stream).await,
                }
                stream.close().await.unwrap();
                // Until the peer knows of the end.
                client.wait_idle(FAREWELL).await.unwrap();
            }
        }
    });
    println!("{}", processor_time());
}

async fn fill(mut stream: impl AsyncWrite + Unpin) {
    let block = vec![7; BLOCK];
    let begun = Instant::now();
    while begun.elapsed() < SPAN {
        stream.write_all(&block).await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

/// As [`fill`], from where the data lie.
async fn fill_in_place(stream: &mut DcudpStream) {
    let block = Bytes::from(vec![7; BLOCK]);
    let begun = Instant::now();
    while begun.elapsed() < SPAN {
        stream.write_bytes(block.clone()).await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

/// Received bytes, and the times of the first and the last.
#[derive(Default)]
struct Received {
    bytes: u64,
    span: Option<(Instant, Instant)>,
}

impl Received {
    fn add(&mut self, count: usize) {
        let now = Instant::now();
        let (first, _) = self.span.unwrap_or((now, now));
        self.span = Some((first, now));
        self.bytes += count as u64;
    }

    fn result(&self) -> (u64, Duration) {
        let span = self.span.map(|(first, last)| last - first);
        (self.bytes, span.unwrap_or_default())
    }
}

/// Reads to the end; returns the bytes, and the time between the first and the last.
async fn drain(mut stream: impl AsyncRead + Unpin) -> (u64, Duration) {
    let mut block = vec![0; BLOCK];
    let mut received = Received::default();
    loop {
        match stream.read(&mut block).await.unwrap() {
            0 => return received.result(),
            count => received.add(count),
        }
    }
}

/// As [`drain`], from where the data were received.
async fn drain_in_place(stream: &mut DcudpStream) -> (u64, Duration) {
    let mut chunks = [const { Bytes::new() }; CHUNKS];
    let mut received = Received::default();
    loop {
        match stream.read_chunks(&mut chunks, BLOCK).await.unwrap() {
            0 => return received.result(),
            count => received.add(chunks.iter().take(count).map(Bytes::len).sum()),
        }
    }
}
