//! The two interfaces joined by a cable.

use std::io;

use weir_fabric::PortIndex;

use super::SIDES;
use crate::claim::{ClaimError, InterfaceClaim};
use crate::port::{PacketSocket, Port, PortError};

/// Two interfaces cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Both interfaces are the same.
    #[error("`{0}` is at both ends: a cable joins two interfaces")]
    SameInterface(String),
    /// The interface already belongs to a bridge, bond or virtual router.
    #[error(
        "`{name}` is a port of `{master}`, which passes its frames on too: `ip link set {name} nomaster` \
         frees it"
    )]
    InUse {
        /// The interface.
        name: String,
        /// The bridge, bond or virtual router that it belongs to.
        master: String,
    },
    /// An interface does not exist, or may not be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Another process controls an interface.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Another system error.
    #[error("making an event descriptor: {0}")]
    System(#[from] io::Error),
}

/// Two interfaces by name, with ports in promiscuous mode.
#[derive(Debug)]
pub(super) struct InterfacePair {
    pub(super) names: [String; 2],
    /// The names of interfaces that have disappeared since this was last taken.
    pub(super) gone: Vec<String>,
    pub(super) exist: bool,
    /// Frames lost before they were read, by the interface that they came in at.
    pub(super) overrun: [u64; 2],
    _claims: [InterfaceClaim; 2],
}

impl InterfacePair {
    /// Opens both interfaces, in the calling thread's network namespace.
    pub(super) fn join(interfaces: [&str; 2]) -> Result<(Self, [Port; 2]), AttachError> {
        let [one, other] = interfaces.map(bind);
        let ports = [one?, other?];
        let [one, other] = &ports;
        if one.interface() == other.interface() {
            return Err(AttachError::SameInterface(interfaces[1].to_owned()));
        }
        let claim = |name, port: &PacketSocket| InterfaceClaim::take(name, port.interface());
        let claims = [claim(interfaces[0], one)?, claim(interfaces[1], other)?];
        for port in &ports {
            port.set_promiscuous()?;
        }
        let ends = Self {
            names: interfaces.map(str::to_owned),
            gone: Vec::new(),
            exist: true,
            overrun: [0; 2],
            _claims: claims,
        };
        Ok((ends, ports.map(Port::from)))
    }

    pub(super) fn name_of(&self, port: PortIndex) -> String {
        let mut sides = SIDES.iter().zip(&self.names);
        let found = sides.find(|(side, _)| **side == port);
        found.map_or(String::new(), |(_, name)| name.clone())
    }

    /// Checks for interfaces that have disappeared, and for frames lost before they were read.
    pub(super) fn look_at(&mut self, ports: &[Port; 2]) {
        let gone = |(name, port): (&String, &Port)| (!port.is_attached()).then(|| name.clone());
        for (overrun, port) in self.overrun.iter_mut().zip(ports) {
            *overrun += port.take_dropped();
        }
        self.gone = self.names.iter().zip(ports).filter_map(gone).collect();
        self.exist = self.gone.is_empty();
    }
}

/// Opens a socket at an interface that belongs to no bridge, bond or virtual router.
fn bind(name: &str) -> Result<PacketSocket, AttachError> {
    let socket = PacketSocket::bind(name)?;
    match master(name, socket.interface()) {
        Some(master) => Err(AttachError::InUse {
            name: name.to_owned(),
            master,
        }),
        None => Ok(socket),
    }
}

/// Returns the bridge, bond or virtual router of an interface, as far as /sys shows it. /sys may belong
/// to another network namespace.
fn master(name: &str, index: u32) -> Option<String> {
    let folder = std::path::Path::new("/sys/class/net").join(name);
    let shown = std::fs::read_to_string(folder.join("ifindex")).ok()?;
    if shown.trim().parse() != Ok(index) {
        return None;
    }
    let master = std::fs::read_link(folder.join("master")).ok()?;
    Some(master.file_name()?.to_str()?.to_owned())
}
