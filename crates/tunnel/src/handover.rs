//! A restart without an end of connections: the successor gets the listening sockets of its predecessor over the
//! control socket, as file descriptors (SCM_RIGHTS, unix(7)).
//!
//! | sender | message |
//! |---|---|
//! | successor | the line `take over` |
//! | predecessor | a line of JSON, with the sockets, and the control socket as the last one |
//! | successor | the line `ready`, once it listens |
//!
//! The predecessor accepts nothing any more then, and closes the connection when it ends. A successor that
//! closes it before has failed: the predecessor goes on.

use std::io::{self, BufRead as _, BufReader, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroU8;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use weir_net::Predecessor;

use crate::control::ControlError;

/// The request of a successor.
pub(crate) const TAKE_OVER: &str = "take over";
/// What a successor says when it listens.
pub(crate) const READY: &str = "ready";
/// The kernel's limit for one message (SCM_MAX_FD), without the control socket.
const MOST_SOCKETS: usize = 252;
/// The time limit of the successor for the predecessor.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process gives to its successor.
#[derive(Debug, Default)]
pub struct Handover {
    endpoint: Option<SharedEndpoint>,
    sockets: Vec<(OfferedSocket, OwnedFd)>,
}

/// What a process has from its predecessor.
#[derive(Debug)]
pub struct Inheritance {
    stream: UnixStream,
    path: PathBuf,
    endpoint: Option<SharedEndpoint>,
    sockets: Vec<(OfferedSocket, OwnedFd)>,
    control: Option<OwnedFd>,
}

/// The answer to a successor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The sockets, in the order of their descriptors.
    Offer {
        endpoint: Option<SharedEndpoint>,
        sockets: Vec<OfferedSocket>,
    },
    /// Why there is none.
    Refused(String),
}

/// A server's DCQUIC endpoint, whose port is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SharedEndpoint {
    address: SocketAddr,
    generation: u16,
    engines: NonZeroU8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OfferedSocket {
    kind: SocketKind,
    address: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SocketKind {
    Tcp,
    Udp,
}

impl Handover {
    /// Adds a DCQUIC endpoint.
    pub(crate) fn endpoint(&mut self, address: SocketAddr, endpoint: Predecessor) {
        self.endpoint = Some(SharedEndpoint {
            address,
            generation: endpoint.generation,
            engines: endpoint.engines,
        });
    }

    /// Adds a listener.
    pub(crate) fn tcp(&mut self, listener: &tokio::net::TcpListener) -> io::Result<()> {
        self.socket(SocketKind::Tcp, listener.local_addr()?, listener.as_fd())
    }

    /// Adds a UDP socket of applications.
    pub(crate) fn udp(&mut self, socket: &tokio::net::UdpSocket) -> io::Result<()> {
        self.socket(SocketKind::Udp, socket.local_addr()?, socket.as_fd())
    }

    fn socket(
        &mut self,
        kind: SocketKind,
        address: SocketAddr,
        socket: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let offered = OfferedSocket { kind, address };
        self.sockets.push((offered, socket.try_clone_to_owned()?));
        Ok(())
    }
}

/// Sends an offer, or why there is none, with the control socket.
///
/// # Errors
/// The system's.
pub(crate) fn answer(
    stream: BorrowedFd<'_>,
    offer: Result<Handover, String>,
    control: BorrowedFd<'_>,
) -> io::Result<()> {
    let offer = offer.and_then(|offer| match offer.sockets.len() {
        count if count > MOST_SOCKETS => Err(format!(
            "it has {count} sockets, and at most {MOST_SOCKETS} can be handed over"
        )),
        _ => Ok(offer),
    });
    let (answer, sockets) = match offer {
        Ok(Handover { endpoint, sockets }) => {
            let (sockets, descriptors): (Vec<_>, Vec<_>) = sockets.into_iter().unzip();
            (Answer::Offer { endpoint, sockets }, descriptors)
        }
        Err(why) => (Answer::Refused(why), Vec::new()),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    let mut descriptors: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    descriptors.push(control);
    let rights = SendAncillaryMessage::ScmRights(&descriptors);
    let mut space = vec![MaybeUninit::uninit(); rights.size()];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(rights);
    let sent = sendmsg(
        stream,
        &[IoSlice::new(&line)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    // The stream's buffer is empty, and larger than any line.
    if sent == line.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

impl Inheritance {
    /// Asks the process at a control socket for its sockets; `None` where no process listens there. It goes on
    /// as before until [`Inheritance::begin`].
    ///
    /// # Errors
    /// [`ControlError`], which names the socket.
    pub fn take_over(path: &Path) -> Result<Option<Self>, ControlError> {
        let failed = |source| ControlError::TakeOver {
            path: path.to_owned(),
            source,
        };
        let Ok(mut stream) = UnixStream::connect(path) else {
            return Ok(None);
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let asked = stream.write_all(format!("{TAKE_OVER}\n").as_bytes());
        asked.map_err(failed)?;
        let (line, descriptors) = receive(&stream).map_err(failed)?;
        let answer = serde_json::from_slice(&line).map_err(|_| ControlError::Foreign {
            path: path.to_owned(),
        })?;
        match answer {
            Answer::Refused(why) => Err(failed(io::Error::other(why))),
            Answer::Offer { endpoint, sockets } if sockets.len() + 1 == descriptors.len() => {
                let mut descriptors = descriptors.into_iter();
                let sockets = sockets.into_iter().zip(&mut descriptors).collect();
                Ok(Some(Self {
                    stream,
                    path: path.to_owned(),
                    endpoint,
                    sockets,
                    control: descriptors.next(),
                }))
            }
            Answer::Offer { .. } => Err(failed(io::Error::other("descriptors are missing"))),
        }
    }

    /// Returns the DCQUIC endpoint at an address, whose port may be 0 for any, and its address.
    pub(crate) fn endpoint(&self, wanted: SocketAddr) -> Option<(SocketAddr, Predecessor)> {
        let endpoint = self.endpoint?;
        let SharedEndpoint {
            address,
            generation,
            engines,
        } = endpoint;
        let is_it = address.ip() == wanted.ip() && [0, address.port()].contains(&wanted.port());
        let predecessor = Predecessor {
            generation,
            engines,
        };
        is_it.then_some((address, predecessor))
    }

    /// Returns whether the predecessor is a server.
    pub(crate) fn is_of_server(&self) -> bool {
        self.endpoint.is_some()
    }

    /// Returns the listener at an address, once.
    pub(crate) fn tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.socket(SocketKind::Tcp, address).map(TcpListener::from)
    }

    /// Returns the UDP socket at an address, once.
    pub(crate) fn udp(&mut self, address: SocketAddr) -> Option<UdpSocket> {
        self.socket(SocketKind::Udp, address).map(UdpSocket::from)
    }

    /// Returns the control socket and its path, once.
    pub fn control(&mut self) -> Option<(PathBuf, OwnedFd)> {
        Some((self.path.clone(), self.control.take()?))
    }

    fn socket(&mut self, kind: SocketKind, address: SocketAddr) -> Option<OwnedFd> {
        let wanted = OfferedSocket { kind, address };
        let mut sockets = self.sockets.iter();
        let index = sockets.position(|(offered, _)| *offered == wanted)?;
        Some(self.sockets.swap_remove(index).1)
    }

    /// Tells the predecessor that this process listens. Returns what waits for the predecessor's end.
    ///
    /// # Errors
    /// [`ControlError`]: the predecessor has ended.
    pub fn begin(mut self) -> Result<impl Future<Output = ()> + Send, ControlError> {
        let path = self.path.clone();
        let failed = |source| ControlError::TakeOver { path, source };
        let begin = || {
            self.stream.write_all(format!("{READY}\n").as_bytes())?;
            self.stream.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(self.stream)
        };
        let stream = begin().map_err(failed)?;
        Ok(async move {
            let mut nothing = [0];
            // An error is an end as well.
            while stream.readable().await.is_ok() {
                match stream.try_read(&mut nothing) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return,
                }
            }
        })
    }
}

/// Receives a line, and the descriptors at its beginning.
fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = vec![0; 64 * 1024];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SOCKETS + 1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut buffer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = descriptors.flatten().collect();
    buffer.truncate(received.bytes);
    if !buffer.ends_with(b"\n") {
        let rest = BufReader::new(stream.take(1 << 20)).read_until(b'\n', &mut buffer)?;
        if rest == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((buffer, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sockets_reach_the_successor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        assert!(Inheritance::take_over(&path).unwrap().is_none());
        let control = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener = crate::listen::listen(any).unwrap();
        let address = listener.local_addr().unwrap();
        let datagrams = crate::listen::bind_udp(any).unwrap();
        let mut offer = Handover::default();
        offer.tcp(&listener).unwrap();
        offer.udp(&datagrams).unwrap();
        let predecessor = Predecessor {
            generation: 7,
            engines: NonZeroU8::MIN,
        };
        offer.endpoint(address, predecessor);
        let asking = {
            let path = path.clone();
            std::thread::spawn(move || Inheritance::take_over(&path))
        };
        let (stream, _) = control.accept().unwrap();
        let mut request = String::new();
        BufReader::new(&stream).read_line(&mut request).unwrap();
        assert_eq!(request.trim_end(), TAKE_OVER);
        answer(stream.as_fd(), Ok(offer), control.as_fd()).unwrap();
        let mut inherited = asking.join().unwrap().unwrap().unwrap();
        drop(listener);
        let taken = inherited.tcp(address).unwrap();
        assert_eq!(taken.local_addr().unwrap(), address);
        assert!(inherited.tcp(address).is_none());
        assert!(inherited.udp(datagrams.local_addr().unwrap()).is_some());
        let found = inherited.endpoint(SocketAddr::new(address.ip(), 0));
        assert_eq!(found, Some((address, predecessor)));
        assert_eq!(inherited.endpoint("127.0.0.1:1".parse().unwrap()), None);
        assert!(inherited.control().is_some());
        let ended = inherited.begin().unwrap();
        let mut ready = String::new();
        BufReader::new(&stream).read_line(&mut ready).unwrap();
        assert_eq!(ready.trim_end(), READY);
        drop(stream);
        ended.await;
    }

    #[test]
    fn a_refusal_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let control = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let asking = std::thread::spawn(move || Inheritance::take_over(&path));
        let (stream, _) = control.accept().unwrap();
        answer(stream.as_fd(), Err("not now".to_owned()), control.as_fd()).unwrap();
        let error = asking.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("not now"), "{error}");
    }
}
