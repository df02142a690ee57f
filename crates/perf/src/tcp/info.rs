//! The kernel's view of a TCP connection as a test reports it.

use std::os::fd::OwnedFd;

use weir_net::KernelTcpInfo;

use crate::path::{PathSample, Probe};

/// Asks the kernel about a connection. Keeps a descriptor of its own, so that it can be asked after
/// the stream is gone.
pub(super) struct TcpProbe {
    socket: OwnedFd,
}

impl TcpProbe {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }
}

impl Probe for TcpProbe {
    fn sample(&self) -> Option<PathSample> {
        let info = KernelTcpInfo::of(&self.socket).ok()?;
        Some(PathSample {
            retransmits: info.retransmits,
            ce_marked: info.ce_marked,
            rtt: info.smoothed_rtt,
            rtt_variation: Some(info.rtt_variation),
            cwnd: Some(info.cwnd),
            path_mtu: info.path_mtu,
            pacing: None,
        })
    }
}
