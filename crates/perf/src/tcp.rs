//! Kernel TCP: sockets with the congestion control and segment size that the test asks for.

mod info;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use bytes::Bytes;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use weir_units::ByteSize;

use crate::error::Error;
use crate::parameters::Parameters;
use crate::path::Probe;
use crate::payload::BLOCK;
use crate::stream::{Sink, Source};

/// What `TCP_MAXSEG` accepts (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` of the kernel).
const SEGMENT_SIZES: std::ops::RangeInclusive<u64> = 88..=32_767;

/// Checks that the kernel accepts segments of this size.
pub(crate) fn check_segment_size(size: ByteSize) -> Result<(), Error> {
    if SEGMENT_SIZES.contains(&size.bytes()) {
        return Ok(());
    }
    Err(Error::parameter(
        "mps",
        format!(
            "{size}: over tcp it is the largest segment, from {}B to {}B",
            SEGMENT_SIZES.start(),
            SEGMENT_SIZES.end()
        ),
    ))
}

/// Checks that this machine's kernel has a congestion control of this name.
pub(crate) fn check_congestion(name: &str) -> Result<(), Error> {
    if let Some((name, _)) = name.split_once(',') {
        return Err(Error::parameter(
            "congestion",
            format!("the kernel's `{name}` takes no parameters"),
        ));
    }
    let refused = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| socket.set_tcp_congestion(name.as_bytes()));
    refused.map_err(|source| congestion_error(name, &source))
}

fn congestion_error(name: &str, source: &io::Error) -> Error {
    const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let problem = match source.kind() {
        io::ErrorKind::NotFound => format!(
            "this kernel has no congestion control `{name}`; it has {}",
            fs::read_to_string(AVAILABLE)
                .unwrap_or_default()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(", ")
        ),
        _ => format!("this kernel does not set congestion control `{name}`: {source}"),
    };
    Error::parameter("congestion", problem)
}

/// Connects with the test's settings.
pub(crate) async fn connect(server: SocketAddr, test: &Parameters) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect {
        address: server,
        source,
    };
    let socket = match server {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
    .map_err(failed)?;
    // The kernel announces the segment size to the peer when it connects: both sides follow it.
    if let Some(size) = test.packet_size {
        let size = u32::try_from(size.bytes()).unwrap_or(u32::MAX);
        SockRef::from(&socket).set_tcp_mss(size).map_err(failed)?;
    }
    set_congestion(&SockRef::from(&socket), test)?;
    socket.connect(server).await.map_err(failed)
}

/// Gives a connection the congestion control that the test asks for.
pub(crate) fn set_congestion(socket: &SockRef<'_>, test: &Parameters) -> Result<(), Error> {
    match &test.congestion {
        None => Ok(()),
        Some(name) => socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(|source| congestion_error(name, &source)),
    }
}

/// The congestion control that a connection uses.
pub(crate) fn congestion(stream: &TcpStream) -> String {
    let name = SockRef::from(stream).tcp_congestion().unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// What tells about a connection while it is in use.
pub(crate) fn probe(stream: &TcpStream) -> Result<Box<dyn Probe>, Error> {
    let socket = stream
        .as_fd()
        .try_clone_to_owned()
        .map_err(Error::stream("watching a connection"))?;
    Ok(Box::new(info::TcpProbe::new(socket)))
}

/// The sending half of anything that tokio can write to.
pub(crate) struct ByteSink<S>(pub(crate) S);

impl<S: AsyncWrite + Unpin + Send + 'static> Sink for ByteSink<S> {
    async fn send(&mut self, data: Bytes) -> io::Result<usize> {
        self.0.write(&data).await
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}

/// The receiving half of anything that tokio can read from.
pub(crate) struct ByteSource<S> {
    stream: S,
    buffer: Vec<u8>,
}

impl<S> ByteSource<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; BLOCK],
        }
    }
}

impl<S: AsyncRead + Unpin + Send + 'static> Source for ByteSource<S> {
    async fn receive(&mut self) -> io::Result<usize> {
        self.stream.read(&mut self.buffer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_congestion_control_is_answered_with_those_that_exist() {
        let message = check_congestion("nosuch").unwrap_err().to_string();
        assert!(message.contains("`nosuch`"), "{message}");
        assert!(
            message.contains("cubic") || message.contains("reno"),
            "{message}"
        );
        assert!(check_congestion("reno").is_ok());
        let message = check_congestion("cubic,beta=0.5").unwrap_err().to_string();
        assert!(message.contains("takes no parameters"), "{message}");
    }
}
