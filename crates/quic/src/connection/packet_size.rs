//! How large packets are: what the path carries, and what the size of the task asks for.
//!
//! A path's [`MtuDiscovery`](crate::path::MtuDiscovery) says what it carries; probes are sent from
//! here, each as a datagram of its own. A [`PacketSizePolicy`] may ask for less.

use std::sync::Arc;

use weir_units::{ByteSize, Time};
use weir_wire::Transmit;

use super::Connection;
use super::close::LifeCycle;
use super::packet_builder::SentPacketInfo;
use crate::config::{ConfigError, PacketSizePolicy};
use crate::frame::write;
use crate::interfaces::{Interfaces, headers, largest_udp_payload};
use crate::path::{MtuPhase, MtuPlan};
use crate::recovery::SentPacket;
use crate::{Level, Space, StreamId};

/// From this size on a task is a large one.
const LARGE_TASK: ByteSize = ByteSize::from_bytes(1_000_000);
/// Packets of small tasks: jumbo frames of 9000 bytes less the headers of IPv4 and UDP.
const SMALL_TASK_PACKET: usize = 8972;
/// Packets of large tasks.
const LARGE_TASK_PACKET: usize = 5000;

/// What decides on the size of packets, the path aside.
#[derive(Debug)]
pub(super) struct PacketSizing {
    policy: PacketSizePolicy,
    /// The size of the task in progress, by the application's word.
    declared: Option<ByteSize>,
    /// A stream with a large task.
    large_task: Option<StreamId>,
    /// An MTU probe found no room in the window.
    probe_waits: bool,
}

impl PacketSizing {
    pub(super) fn new(policy: PacketSizePolicy) -> Self {
        Self {
            policy,
            declared: None,
            large_task: None,
            probe_waits: false,
        }
    }

    /// The largest packet that the policy wants, in bytes.
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
    /// Which sizes packets have from now on.
    ///
    /// # Errors
    /// [`ConfigError::PacketSize`] where no packet may have the fixed size.
    pub fn set_packet_size_policy(&mut self, policy: PacketSizePolicy) -> Result<(), ConfigError> {
        policy.validate()?;
        self.sizing.policy = policy;
        Ok(())
    }

    /// The size of the task that begins now, for [`PacketSizePolicy::ByTask`]: it holds until the
    /// next call. `None` goes back to what is observed.
    pub fn set_task_size(&mut self, size: Option<ByteSize>) {
        self.sizing.declared = size;
    }

    /// What [`Connection::poll_transmit`] gave could not be sent because its datagrams are too
    /// large for our own interface (EMSGSIZE): they count as lost, and packets have the base size
    /// until a larger one is found anew. A refused MTU probe only ends the search above its size.
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

    /// Data were written to a stream.
    pub(super) fn observe_task(&mut self, id: StreamId) {
        if self.sizing.policy != PacketSizePolicy::ByTask || self.sizing.declared.is_some() {
            return;
        }
        if self.streams.task_size(id) >= LARGE_TASK.bytes() {
            self.sizing.large_task = Some(id);
        }
    }

    /// The machine's interfaces as they are now: packets become as small as ours demands at once,
    /// and larger ones are searched for where it allows them. What we told the peer we accept
    /// cannot change any more.
    pub fn set_interfaces(&mut self, now: Time, interfaces: Arc<Interfaces>) {
        self.interfaces = interfaces;
        if self.peer_known {
            self.begin_mtu_discovery(now);
        }
    }

    /// How large packets may be on the path in use, now that the peer's parameters are known. A
    /// path that was in use before keeps what it found, as far as our interface still carries it.
    pub(super) fn begin_mtu_discovery(&mut self, now: Time) {
        let (plan, cap) = (self.mtu_plan(), self.sizing.cap());
        let path = self.path_mut();
        match path.discovery.phase {
            MtuPhase::Disabled => path.begin_discovery(now, plan, cap),
            MtuPhase::Searching | MtuPhase::SearchComplete => {
                path.discovery.set_limit(plan.limit);
                path.update_mtu(now, cap);
            }
        }
    }

    /// Between which sizes the MTU of the path in use is searched.
    fn mtu_plan(&self) -> MtuPlan {
        let (local, remote) = (self.path().local, self.path().remote);
        let carried = self.interfaces.largest_payload(local, remote);
        let accepted = self
            .peer
            .max_udp_payload_size
            .min(carried.unwrap_or(u64::MAX))
            .min(largest_udp_payload(remote.ip()));
        let capped = |size: ByteSize| size.bytes().min(accepted) as usize;
        let probed = self.config.probe_up_to.unwrap_or(ByteSize::ZERO);
        MtuPlan {
            start: capped(self.config.packet_size),
            limit: capped(self.config.packet_size.max(probed)),
            headers: headers(remote.ip()) as usize,
            raise_interval: self.config.probe_interval,
        }
    }

    /// Packets get the size that the path and the policy allow now.
    pub(super) fn update_packet_size(&mut self, now: Time) {
        if let Some(id) = self.sizing.large_task
            && self.streams.task_size(id) < LARGE_TASK.bytes()
        {
            self.sizing.large_task = None;
        }
        let cap = self.sizing.cap();
        self.path_mut().update_mtu(now, cap);
    }

    /// The size of the MTU probe that is due. None is sent before the handshake is confirmed, nor
    /// while the peer is silent.
    fn mtu_probe_due(&mut self, now: Time) -> Option<usize> {
        let ready = self.handshake.confirmed && self.path().validated && self.probes == [0; 3];
        ready.then(|| self.path_mut().discovery.next_probe(now))?
    }

    /// Whether data must wait until there is room for an MTU probe: a sender that always fills its
    /// window would never have any. Where the probe is a large part of the window, it waits for
    /// an empty one instead.
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
