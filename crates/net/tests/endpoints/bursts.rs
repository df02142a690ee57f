//! Bursts and small receive buffers.

use crate::support::{client, run, server_with};
use weir_net::{ByteSize, Endpoint};

const SMALL: ByteSize = ByteSize::from_bytes(212_992);
const SIZE: usize = 4_000_000;

/// Sends `SIZE` bytes on each of several new connections at once; returns the datagrams sent and lost.
async fn send(client: &Endpoint, server: &Endpoint, at_once: usize) -> (u64, u64) {
    let mut connections = Vec::new();
    for _ in 0..at_once {
        let connecting = client.connect(server.local_address(), "localhost");
        connections.push(connecting.unwrap().await.unwrap());
    }
    let sending = connections.iter().map(|connection| {
        let connection = connection.clone();
        tokio::spawn(async move {
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(&vec![7; SIZE]).await.unwrap();
            stream.finish().unwrap();
            stream.acknowledged().await.unwrap();
        })
    });
    for sent in sending.collect::<Vec<_>>() {
        sent.await.unwrap();
    }
    let totals = connections
        .iter()
        .map(|connection| connection.stats().totals);
    totals.fold((0, 0), |(sent, lost), totals| {
        (
            sent + totals.datagrams_sent,
            lost + totals.packets_lost - totals.spurious_losses,
        )
    })
}

#[test]
fn a_burst_fits_into_a_small_receive_buffer() {
    run(async {
        let (server, fingerprint) = server_with(|tls| tls, |builder| builder.receive_buffer(SMALL));
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connecting) = accepting.accept().await {
                tokio::spawn(async move {
                    let connection = connecting.await.unwrap();
                    while let Ok(mut stream) = connection.accept_uni().await {
                        stream.read_to_end(SIZE).await.unwrap();
                    }
                });
            }
        });
        let client = client(fingerprint);
        let (mut sent, mut lost) = (0, 0);
        for _ in 0..20 {
            let (more_sent, more_lost) = send(&client, &server, 1).await;
            (sent, lost) = (sent + more_sent, lost + more_lost);
        }
        eprintln!("one at a time: {lost} of {sent} datagrams lost");
        assert_eq!((lost, server.stats().datagrams_dropped), (0, 0));
        // Each may fill a share only. Without that bound a fifth is lost. With it, as much is lost when the machine
        // stops this thread for a while, so one good round of many is enough.
        let mut least = f64::INFINITY;
        for _ in 0..30 {
            let (sent, lost) = send(&client, &server, 8).await;
            eprintln!("eight at once: {lost} of {sent} datagrams lost");
            least = least.min(lost as f64 / sent as f64);
            if least < 0.08 {
                break;
            }
        }
        assert!(least < 0.08, "{least}");
    });
}
