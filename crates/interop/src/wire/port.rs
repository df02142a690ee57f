//! The forwarder's UDP socket, which sends and receives datagrams with their ECN codepoints.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use bytes::Bytes;
use quinn_udp::EcnCodepoint;
use weir_traffic_peers::{Batch, Udp};

use crate::stack::Result;

/// A received datagram.
pub(super) struct Message {
    pub(super) from: SocketAddr,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) bytes: Bytes,
}

pub(super) struct Port(Udp);

impl Port {
    pub(super) fn bind(address: IpAddr) -> Result<Self> {
        // `Udp` has large buffers, for datagrams that arrive while the stacks keep the thread busy.
        let udp = Udp::bind(SocketAddr::new(address, 0), false)?;
        without_timestamps(&udp)?;
        Ok(Self(udp))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    pub(super) async fn receive(&self, batch: &mut Batch) -> io::Result<Vec<Message>> {
        self.0.receive(batch).await?;
        let datagrams = batch.marked_datagrams();
        let messages = datagrams.map(|(from, ecn, bytes)| Message {
            from,
            ecn,
            bytes: Bytes::copy_from_slice(bytes),
        });
        Ok(messages.collect())
    }

    pub(super) async fn send(
        &self,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.0.send(to, bytes, usize::MAX, ecn).await
    }
}

/// Turns receive time stamps off. `quinn-udp` has 96 bytes for control messages: a time stamp, the
/// local address and the GRO segment size leave no room for the ECN codepoint, which is lost silently.
fn without_timestamps(udp: &Udp) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the option's value is a C int of the length given.
    let result = unsafe {
        libc::setsockopt(
            udp.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
