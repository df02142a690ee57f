//! The two interfaces that a cable joins.

use std::io;

use weir_fabric::PortIndex;

use super::SIDES;
use crate::port::{PacketSocket, Port, PortError};

/// Why there can be no cable.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Both ends are the same.
    #[error("`{0}` is at both ends: a cable joins two interfaces")]
    SameInterface(String),
    /// Somebody else passes the frames on already.
    #[error(
        "`{name}` is a port of `{master}`, which passes its frames on too: `ip link set {name} nomaster` \
         frees it"
    )]
    InUse {
        /// The interface.
        name: String,
        /// The bridge, bond or virtual router that has it.
        master: String,
    },
    /// An interface is not there, or may not be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Something else.
    #[error("making an event descriptor: {0}")]
    System(#[from] io::Error),
}

/// Two interfaces by name, whose ports take all frames, whomever they are for.
#[derive(Debug)]
pub(super) struct InterfacePair {
    pub(super) names: [String; 2],
    /// The names of those that have disappeared since somebody took them.
    pub(super) gone: Vec<String>,
    pub(super) are_there: bool,
    /// Frames that were lost before they were read.
    pub(super) overrun: u64,
}

impl InterfacePair {
    /// Opens both, in the calling thread's network namespace.
    pub(super) fn join(interfaces: [&str; 2]) -> Result<(Self, [Port; 2]), AttachError> {
        let [one, other] = interfaces.map(bind);
        let ports = [one?, other?];
        let [one, other] = &ports;
        if one.interface() == other.interface() {
            return Err(AttachError::SameInterface(interfaces[1].to_owned()));
        }
        for port in &ports {
            port.set_promiscuous()?;
        }
        let ends = Self {
            names: interfaces.map(str::to_owned),
            gone: Vec::new(),
            are_there: true,
            overrun: 0,
        };
        Ok((ends, ports.map(Port::from)))
    }

    pub(super) fn name_of(&self, port: PortIndex) -> String {
        let mut sides = SIDES.iter().zip(&self.names);
        let found = sides.find(|(side, _)| **side == port);
        found.map_or(String::new(), |(_, name)| name.clone())
    }

    /// Sees what has disappeared, and what was lost unread.
    pub(super) fn look_at(&mut self, ports: &[Port; 2]) {
        let gone = |(name, port): (&String, &Port)| (!port.is_attached()).then(|| name.clone());
        self.overrun += ports.iter().map(Port::take_dropped).sum::<u64>();
        self.gone = self.names.iter().zip(ports).filter_map(gone).collect();
        self.are_there = self.gone.is_empty();
    }
}

/// A socket at an interface that nobody else passes frames on from.
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

/// The bridge, bond or virtual router that an interface is a port of, as far as /sys tells, which may be of
/// another network namespace.
fn master(name: &str, index: u32) -> Option<String> {
    let folder = std::path::Path::new("/sys/class/net").join(name);
    let shown = std::fs::read_to_string(folder.join("ifindex")).ok()?;
    if shown.trim().parse() != Ok(index) {
        return None;
    }
    let master = std::fs::read_link(folder.join("master")).ok()?;
    Some(master.file_name()?.to_str()?.to_owned())
}
