//! An endpoint that follows another one at its port: a program that restarts without an end of its
//! connections.
//!
//! Both share the port for as long as the predecessor has connections. The second and third byte of its connection
//! IDs are its generation, by which the kernel's filter finds the predecessor's sockets; everything else, new
//! connections above all, reaches the successor. One in 65,536 of them has the predecessor's generation by chance:
//! that refuses it, and the client begins again.

use std::io;
use std::num::NonZeroU8;
use std::sync::{Arc, Mutex, PoisonError};

use crate::dcquic::Shared;
use crate::error::SuccessionError;
use crate::port_sharing::{PortFilter, PortSharing};

/// What a successor has to know of the endpoint before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The second and third byte of its connection IDs.
    pub generation: u16,
    /// Its engines: [`EndpointBuilder::threads`](crate::EndpointBuilder::threads).
    pub engines: NonZeroU8,
}

/// How an endpoint may be followed, and what it follows.
#[derive(Debug)]
pub(crate) struct Succession {
    generation: u16,
    engines: NonZeroU8,
    /// Whether another endpoint has the port too.
    shared: Mutex<bool>,
}

impl Succession {
    /// The succession of an endpoint with `generation` and `engines`, which follows another one or not.
    pub(crate) fn new(generation: u16, engines: NonZeroU8, follows: bool) -> Self {
        Self {
            generation,
            engines,
            shared: Mutex::new(follows),
        }
    }

    /// Returns the second and third byte of the endpoint's connection IDs.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }

    /// Lets a successor have the port.
    pub(crate) fn share(&self, engines: &[Arc<Shared>]) -> Result<Predecessor, SuccessionError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if *shared {
            return Err(SuccessionError::Shared);
        }
        let sockets = engines
            .iter()
            .flat_map(|engine| engine.sockets.open().sockets);
        for socket in sockets {
            socket.share_port(true).map_err(SuccessionError::System)?;
        }
        *shared = true;
        Ok(Predecessor {
            generation: self.generation,
            engines: self.engines,
        })
    }

    /// Has the port alone again, once the other endpoint is gone.
    pub(crate) fn keep(&self, engines: &[Arc<Shared>]) -> Result<(), SuccessionError> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = PortFilter::of_engines(self.engines);
        for engine in engines {
            for socket in engine.sockets.open().sockets {
                socket.filter(&filter).map_err(SuccessionError::System)?;
                if self.engines == NonZeroU8::MIN {
                    socket.share_port(false).map_err(SuccessionError::System)?;
                }
            }
        }
        *shared = false;
        Ok(())
    }
}

/// Returns how the socket of an engine shares the port, where the endpoint can be followed.
pub(crate) fn sharing(follows: Option<Predecessor>, engine: u8, engines: NonZeroU8) -> PortSharing {
    match follows {
        Some(predecessor) => PortSharing::Follows {
            predecessor,
            engines,
            is_last: engine + 1 == engines.get(),
        },
        None if engines == NonZeroU8::MIN => PortSharing::Followed,
        None => PortSharing::of_engine(engine, engines),
    }
}

/// Fails where an address is in use. A socket that shares its port would join another program's.
pub(crate) fn check_free(socket: &socket2::Socket, address: &socket2::SockAddr) -> io::Result<()> {
    let probe = socket2::Socket::new(
        address.domain(),
        socket2::Type::DGRAM,
        Some(socket2::Protocol::UDP),
    )?;
    if address.domain() == socket2::Domain::IPV6 {
        probe.set_only_v6(socket.only_v6()?)?;
    }
    probe.bind(address)
}
