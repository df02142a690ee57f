//! Chooses the packet size: from the path's MTU and the size of the task.
//!
//! A path's [`MtuDiscovery`](crate::path::MtuDiscovery) reports the size that the path carries.
//! This module sends its probes, each as a datagram of its own. A [`PacketSizePolicy`] may choose
//! less.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rand_core::Rng;
use weir_congestion::Context;
use weir_units::{ByteSize, Time};
use weir_wire::Transmit;

use super::Connection;
use super::close::LifeCycle;
use super::packet_builder::SentPacketInfo;
use crate::config::{ConfigError, PacketSizePolicy, PathEndpoints, TransportConfig};
use crate::event::EndpointEvent;
use crate::frame::write;
use crate::interfaces::{Interfaces, SMALLEST_MAX_UDP_PAYLOAD, headers, largest_udp_payload};
use crate::path::{MtuPhase, MtuPlan};
use crate::recovery::SentPacket;
use crate::{Level, Space, StreamId};

/// The packet size beyond routers, before a larger one is found: the UDP payload that Ethernet
/// carries in IPv6.
const ROUTED_PACKET: ByteSize = ByteSize::from_bytes(1452);
/// Tasks of at least this size are large.
const LARGE_TASK: ByteSize = ByteSize::from_bytes(1_000_000);
/// The packet size of small tasks: jumbo frames of 9000 bytes less the IPv4 and UDP headers.
const SMALL_TASK_PACKET: usize = 8972;
/// The packet size of large tasks.
const LARGE_TASK_PACKET: usize = 5000;

/// Inputs of the packet size other than the path.
#[derive(Debug)]
pub(super) struct PacketSizing {
    policy: PacketSizePolicy,
    /// The size of the current task, as the application declared it.
    declared: Option<ByteSize>,
    /// A stream with a large task.
    large_task: Option<StreamId>,
    /// An MTU probe found no room in the window.
    probe_waits: bool,
    /// The size that earlier connections have found on the way to this address of the peer.
    found: Option<(IpAddr, ByteSize)>,
    /// The size of the path in use as the endpoint knows it, and whether the search for larger ones
    /// has ended.
    reported: (usize, bool),
}

/// Returns the packet size at the start of a path, as far as the peer accepts it. `found`: as
/// earlier connections to the peer have found it.
pub(super) fn initial_size(
    config: &TransportConfig,
    interfaces: &Interfaces,
    (local, remote): (Option<SocketAddr>, SocketAddr),
    found: Option<ByteSize>,
) -> ByteSize {
    let on_link = || interfaces.on_link_payload(local, remote);
    config
        .packet_size
        .or(found)
        .or_else(|| on_link().map(ByteSize::from_bytes))
        .unwrap_or(ROUTED_PACKET)
}

impl PacketSizing {
    pub(super) fn new(policy: PacketSizePolicy, found: Option<(IpAddr, ByteSize)>) -> Self {
        Self {
            policy,
            declared: None,
            large_task: None,
            probe_waits: false,
            found,
            reported: (0, false),
        }
    }

    /// Returns the size that earlier connections have found on the way to this address.
    fn found_towards(&self, remote: SocketAddr) -> Option<ByteSize> {
        let (ip, size) = self.found?;
        (ip == remote.ip()).then_some(size)
    }

    /// Returns the largest packet that the policy allows, in bytes.
    fn cap(&self) -> usize {
        match self.policy {
            PacketSizePolicy::Largest => usize::MAX,
            PacketSizePolicy::Fixed(size) => size.as_usize(),
            PacketSizePolicy::ByTask => {
                let is_large = match self.declared {
                    Some(size) => size >= LARGE_TASK,
                    None => self.large_task.is_some(),
                };
                if is_large {
                    LARGE_TASK_PACKET
                } else {
                    SMALL_TASK_PACKET
                }
            }
        }
    }
}

impl Connection {
    /// Sets the packet size policy.
    ///
    /// # Errors
    /// [`ConfigError::PacketSize`] if the fixed size is not a valid packet size.
    pub fn set_packet_size_policy(&mut self, policy: PacketSizePolicy) -> Result<(), ConfigError> {
        policy.validate()?;
        self.sizing.policy = policy;
        Ok(())
    }

    /// Sets the size of the task that starts now, for [`PacketSizePolicy::ByTask`], until the next
    /// call. `None` returns to the observed size.
    pub fn set_task_size(&mut self, size: Option<ByteSize>) {
        self.sizing.declared = size;
    }

    /// Handles a batch of [`Connection::poll_transmit`] whose datagrams were too large for our own
    /// interface (EMSGSIZE). They count as lost, and packets have the base size until a larger one
    /// is found again. A refused MTU probe only ends the search above its size.
    pub fn handle_too_large(&mut self, now: Time, transmit: &Transmit) {
        if !matches!(self.state, LifeCycle::Open)
            || !self.path().joins(transmit.remote, transmit.local)
        {
            return;
        }
        let size = transmit.segment_size.unwrap_or(transmit.size);
        let (recovery, paths, mut fates) = self.recovery_parts();
        let path = &mut paths[0];
        if path.discovery.on_too_large(size) {
            recovery.give_up_large_packets(now, path, &mut fates);
            self.update_packet_size(now);
        }
    }

    /// Records that data was written to a stream.
    pub(super) fn observe_task(&mut self, id: StreamId) {
        if self.sizing.policy != PacketSizePolicy::ByTask || self.sizing.declared.is_some() {
            return;
        }
        if self.streams.task_size(id) >= LARGE_TASK.bytes() {
            self.sizing.large_task = Some(id);
        }
    }

    /// Updates the machine's interfaces. Packets shrink at once to the size that our interface
    /// carries, and larger sizes are searched for where it allows them. The size that we announced
    /// to the peer cannot change any more.
    pub fn set_interfaces(&mut self, now: Time, interfaces: Arc<Interfaces>) {
        self.interfaces = interfaces;
        if self.peer_known {
            self.begin_mtu_discovery(now);
        }
    }

    /// Starts MTU discovery on the path in use, once the peer's parameters are known. A path that
    /// was in use before keeps its result, as far as our interface still carries it.
    pub(super) fn begin_mtu_discovery(&mut self, now: Time) {
        let (plan, cap) = (self.mtu_plan(), self.largest_allowed());
        let path = &mut self.paths[0];
        match path.discovery.phase {
            MtuPhase::Disabled => {
                path.begin_discovery(now, plan, cap);
                self.fit_initial_window();
            }
            MtuPhase::Searching | MtuPhase::SearchComplete => {
                path.discovery.set_limit(plan.limit);
                path.update_mtu(now, cap);
            }
        }
        self.sizing.reported = self.size_so_far();
    }

    fn size_so_far(&self) -> (usize, bool) {
        let discovery = &self.path().discovery;
        let has_ended =
            discovery.phase == MtuPhase::SearchComplete && discovery.stats.probes_sent > 0;
        (discovery.current, has_ended)
    }

    /// Returns the largest packet that the policy and an external cap on the window allow.
    fn largest_allowed(&self) -> usize {
        let window = self.window_cap.map_or(usize::MAX, ByteSize::as_usize);
        self.sizing.cap().min(window.max(SMALLEST_MAX_UDP_PAYLOAD))
    }

    /// Returns the packet size of a new path, as far as the peer accepts it.
    pub(super) fn expected_size(&self, local: Option<SocketAddr>, remote: SocketAddr) -> ByteSize {
        let found = self.sizing.found_towards(remote);
        initial_size(&self.config, &self.interfaces, (local, remote), found)
    }

    /// Restarts the congestion controller where the peer accepts only smaller packets than expected:
    /// the initial window is counted in packets, and acknowledged handshake packets have fixed it.
    fn fit_initial_window(&mut self) {
        let (local, remote) = (self.path().local, self.path().remote);
        let size = ByteSize::from_bytes(self.path().mtu as u64);
        let is_fitting = size >= self.expected_size(local, remote);
        if is_fitting || self.recovery.largest_acked(Space::Data).is_some() {
            return;
        }
        let context = Context {
            packet_size: size,
            seed: self.rng.next_u64(),
            is_paced: self.config.pacing,
        };
        let ends = PathEndpoints { local, remote };
        self.paths[0].controller = self.config.congestion.build(&ends, &context);
    }

    /// Reports a size to the endpoint that a probe has found, or a black hole has left.
    fn report_found_size(&mut self, now: Time) {
        let found = self.size_so_far();
        let path = &self.paths[0];
        if self.config.packet_size.is_some()
            || path.discovery.phase == MtuPhase::Disabled
            || found == self.sizing.reported
        {
            return;
        }
        self.sizing.reported = found;
        self.endpoint_events
            .push_back(EndpointEvent::PacketSizeFound {
                now,
                remote: path.remote.ip(),
                size: ByteSize::from_bytes(path.discovery.current as u64),
            });
    }

    /// Returns the bounds of the MTU search on the path in use.
    fn mtu_plan(&self) -> MtuPlan {
        let (local, remote) = (self.path().local, self.path().remote);
        let carried = self.interfaces.largest_payload(local, remote);
        let carried = carried.map(ByteSize::from_bytes);
        let accepted = self
            .peer
            .max_udp_payload_size
            .min(carried.map_or(u64::MAX, ByteSize::bytes))
            .min(largest_udp_payload(remote.ip()));
        let capped = |size: ByteSize| size.bytes().min(accepted) as usize;
        let start = self.expected_size(local, remote);
        let is_found = self.sizing.found_towards(remote).is_some();
        let limit = match (self.config.packet_size, self.config.probe_up_to) {
            (Some(size), up_to) => size.max(up_to.unwrap_or(size)),
            (None, up_to) => up_to.or(carried).unwrap_or(start).max(start),
        };
        MtuPlan {
            start: capped(start),
            limit: capped(limit),
            headers: headers(remote.ip()) as usize,
            limit_first: self.config.packet_size.is_none(),
            is_searched: self.config.packet_size.is_none() && is_found,
            raise_interval: self.config.probe_interval,
        }
    }

    /// Sets the packet size that the path and the policy allow now.
    pub(super) fn update_packet_size(&mut self, now: Time) {
        if let Some(id) = self.sizing.large_task
            && self.streams.task_size(id) < LARGE_TASK.bytes()
        {
            self.sizing.large_task = None;
        }
        let cap = self.largest_allowed();
        self.path_mut().update_mtu(now, cap);
        self.report_found_size(now);
    }

    /// Returns the size of the MTU probe that is due. None is sent before the handshake is
    /// confirmed, nor while the peer does not respond.
    fn mtu_probe_due(&mut self, now: Time) -> Option<usize> {
        let ready = self.handshake.confirmed && self.path().validated && self.probes == [0; 3];
        ready.then(|| self.path_mut().discovery.next_probe(now))?
    }

    /// Whether data must wait until an MTU probe fits the window: a sender that always fills its
    /// window would never have room. A probe larger than half of the window waits for an empty one
    /// instead.
    pub(super) fn makes_room_for_mtu_probe(&mut self, now: Time) -> bool {
        if !self.sizing.probe_waits {
            return false;
        }
        let window = self.path().window().bytes();
        self.sizing.probe_waits = self
            .mtu_probe_due(now)
            .is_some_and(|size| size as u64 <= window / 2);
        self.sizing.probe_waits
    }

    /// Writes the MTU probe that is due: PING and PADDING, in a datagram of its own (RFC 9000,
    /// section 14.4).
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let size = self.mtu_probe_due(now)?;
        if !self.path().can_send(size as u64) {
            self.sizing.probe_waits = true;
            return None;
        }
        let begin = buffer.len();
        let end = begin + size;
        let draft = match self.begin_packet(Level::OneRtt, buffer, end) {
            Ok(draft) => draft?,
            Err(error) => {
                self.close_with(now, error);
                return None;
            }
        };
        write::ping(buffer);
        let leaving = SentPacketInfo {
            now,
            ecn: self.path().ecn.codepoint(),
            is_mtu_probe: true,
        };
        let finished = self.finish_packet(&draft, buffer, end, leaving);
        self.sizing.probe_waits = false;
        self.timers.on_sent_ack_eliciting(now);
        let path = &mut self.paths[0];
        let ecn = path.ecn.codepoint();
        path.discovery.on_probe_sent();
        path.on_datagram_sent(finished.size);
        let packet = SentPacket {
            sent_at: now,
            size: finished.size as u32,
            ack_eliciting: true,
            in_flight: true,
            mtu_probe: true,
            path: path.id,
            ecn,
            ..SentPacket::default()
        };
        self.recovery.on_sent(Space::Data, path, packet);
        let path = self.path();
        Some(Transmit {
            remote: path.remote,
            local: path.local,
            ecn,
            size: finished.size,
            segment_size: None,
        })
    }
}
