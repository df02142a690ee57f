//! A UDP forwarder that loses, duplicates, reorders and marks datagrams, by a seed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::SockRef;
use tokio::net::UdpSocket;

/// Forwards datagrams between one client and `server`; about `loss` of a hundred are lost, and as
/// many are duplicated and delayed until the next one.
pub(crate) async fn forwarder(server: SocketAddr, loss: u64) -> SocketAddr {
    marking_forwarder(server, loss, Arc::default()).await
}

/// As [`forwarder`]; while `marks` is set, all datagrams to the server carry CE.
pub(crate) async fn marking_forwarder(
    server: SocketAddr,
    loss: u64,
    marks: Arc<AtomicBool>,
) -> SocketAddr {
    const CE: u32 = 3;
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    back.connect(server).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let mut client = None;
        let (mut there, mut here) = (Path::new(1, loss), Path::new(2, loss));
        let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                received = front.recv_from(&mut up) => {
                    let Ok((length, from)) = received else { continue };
                    client = Some(from);
                    let ecn = if marks.load(Ordering::Relaxed) { CE } else { 0 };
                    SockRef::from(&*back).set_tos_v4(ecn).unwrap();
                    for datagram in there.pass(&up[..length]) {
                        // A full buffer is one more loss.
                        let _ = back.send(&datagram).await;
                    }
                }
                received = back.recv(&mut down) => {
                    let (Ok(length), Some(client)) = (received, client) else { continue };
                    for datagram in here.pass(&down[..length]) {
                        let _ = front.send_to(&datagram, client).await;
                    }
                }
            }
        }
    });
    address
}

struct Path {
    state: u64,
    loss: u64,
    held: Option<Vec<u8>>,
}

impl Path {
    fn new(seed: u64, loss: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self {
            state,
            loss,
            held: None,
        }
    }

    /// Returns the datagrams to forward for a received one.
    fn pass(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let mut out = vec![datagram.to_vec()];
        if self.draw_event() {
            out.clear();
        } else if self.draw_event() {
            out.push(datagram.to_vec());
        }
        if self.held.is_none() && self.draw_event() {
            self.held = out.pop();
        } else {
            out.extend(self.held.take());
        }
        out
    }

    fn draw_event(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 20) % 100 < self.loss
    }
}
