//! A TCP proxy that can stop forwarding.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Forwards connections to an address. While it is cut, the data waits.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Wire {
    pub(crate) fn to(runtime: &Runtime, to: SocketAddr) -> Self {
        let cut = Arc::new(AtomicBool::new(false));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let is_cut = cut.clone();
        runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(to).await else {
                    continue;
                };
                let ((near_in, near_out), (far_in, far_out)) =
                    (near.into_split(), far.into_split());
                tokio::spawn(pass(near_in, far_out, is_cut.clone()));
                tokio::spawn(pass(far_in, near_out, is_cut.clone()));
            }
        });
        Self { address, cut }
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.cut.store(is_cut, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, cut: Arc<AtomicBool>) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        while cut.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
