//! Tests of recovery with a controller and a sink that log their calls.

mod acks;
mod ecn;
mod losses;
mod measure;
mod mtu;
mod properties;
mod timers;

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

use smallvec::smallvec;
use weir_congestion::{AckSample, Controller, LossSample, Snapshot, SpuriousLoss};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

use super::ack::AckOutcome;
use super::*;
use crate::PathId;
use crate::TransportError;
use crate::frame::{self, EcnCounts, Frame, Frames};
use crate::path::PathConfig;

const SIZE: u32 = 1_200;
const GRANULARITY: Duration = Duration::from_micros(50);
const INITIAL_RTT: Duration = Duration::from_micros(400);
const MAX_ACK_DELAY: Duration = Duration::from_micros(100);

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

const fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1_000)
}

/// The calls to the controller.
#[derive(Debug, Default)]
struct Log {
    window: u64,
    /// `spurious`, `loss`, `ack`, `idle`, in the order of the calls.
    order: Vec<&'static str>,
    acks: Vec<AckSample>,
    losses: Vec<LossSample>,
    spurious: Vec<SpuriousLoss>,
}

#[derive(Clone, Debug)]
struct Recorder(Arc<Mutex<Log>>);

impl Recorder {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap()
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let mut log = self.log();
        log.order.push("ack");
        log.acks.push(*ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        let mut log = self.log();
        log.order.push("loss");
        log.losses.push(*loss);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        let mut log = self.log();
        log.order.push("spurious");
        log.spurious.push(*spurious);
    }

    fn on_idle_restart(&mut self, _now: Time) {
        self.log().order.push("idle");
    }

    fn on_packet_size(&mut self, _size: ByteSize) {}

    fn window(&self) -> ByteSize {
        ByteSize::from_bytes(self.log().window)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// The fates of frames, identified by their offset.
#[derive(Debug, Default)]
struct Fates {
    acked: Vec<(Space, u64)>,
    lost: Vec<(Space, u64)>,
}

impl FrameSink for Fates {
    fn acked(&mut self, space: Space, frame: &SentFrame) {
        if let SentFrame::Crypto { offset, .. } = frame {
            self.acked.push((space, *offset));
        }
    }

    fn lost(&mut self, space: Space, frame: &SentFrame) {
        if let SentFrame::Crypto { offset, .. } = frame {
            self.lost.push((space, *offset));
        }
    }
}

/// One end of a connection, with a path and a clock. A packet's one frame has the packet's number
/// as its offset.
struct Sender {
    recovery: Recovery,
    path: Path,
    controller: Recorder,
    fates: Fates,
    handshake: HandshakeState,
    now: Time,
}

impl Sender {
    /// Creates a sender whose handshake is confirmed.
    fn new(side: Side) -> Self {
        let controller = Recorder(Arc::new(Mutex::new(Log {
            window: 1 << 40,
            ..Log::default()
        })));
        let remote = "[::1]:443".parse().unwrap();
        let path = PathConfig {
            mtu: SIZE as usize,
            initial_rtt: INITIAL_RTT,
            granularity: GRANULARITY,
            ecn: true,
            validated: true,
        };
        let path = Path::new(
            PathId::FIRST,
            remote,
            None,
            Box::new(controller.clone()),
            &path,
        );
        let mut recovery = Recovery::new(
            RecoveryConfig {
                max_probe_interval: Duration::ZERO,
                side,
                granularity: GRANULARITY,
                packet_threshold: 3,
                persistent_congestion_threshold: 3,
                idle_restart: us(10_000),
            },
            Precision::default(),
        );
        recovery.set_peer_max_ack_delay(MAX_ACK_DELAY, MAX_ACK_DELAY);
        Self {
            recovery,
            path,
            controller,
            fates: Fates::default(),
            handshake: HandshakeState {
                has_handshake_keys: true,
                confirmed: true,
                amplification_limited: false,
                waiting: None,
            },
            now: at(1_000),
        }
    }

    /// Creates a client that has just started.
    fn unconfirmed(side: Side) -> Self {
        Self {
            handshake: HandshakeState::default(),
            ..Self::new(side)
        }
    }

    fn packet(&self, space: Space) -> SentPacket {
        SentPacket {
            sent_at: self.now,
            size: SIZE,
            ack_eliciting: true,
            in_flight: true,
            ecn: Ecn::NotEct,
            path: self.path.id,
            frames: smallvec![SentFrame::Crypto {
                offset: self.recovery.next_number(space),
                length: 1
            }],
            ..SentPacket::default()
        }
    }

    fn send(&mut self, space: Space) -> u64 {
        self.send_as(space, |_| ())
    }

    fn send_as(&mut self, space: Space, change: impl FnOnce(&mut SentPacket)) -> u64 {
        let number = self.recovery.next_number(space);
        let mut packet = self.packet(space);
        change(&mut packet);
        self.recovery.on_sent(space, &mut self.path, packet);
        number
    }

    fn send_data(&mut self, count: u64) {
        (0..count).for_each(|_| {
            self.send(Space::Data);
        });
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
    }

    /// Handles an ACK of these ranges, newest first.
    fn ack(
        &mut self,
        space: Space,
        ranges: &[RangeInclusive<u64>],
    ) -> Result<AckOutcome, TransportError> {
        self.ack_with(space, ranges, Duration::ZERO, None)
    }

    fn ack_with(
        &mut self,
        space: Space,
        ranges: &[RangeInclusive<u64>],
        delay: Duration,
        ecn: Option<EcnCounts>,
    ) -> Result<AckOutcome, TransportError> {
        let mut frame = Vec::new();
        assert!(frame::write::ack(
            &mut frame,
            ranges.iter().cloned(),
            0,
            ecn,
            1 << 16
        ));
        self.on_frame(space, &frame, delay)
    }

    fn on_frame(
        &mut self,
        space: Space,
        frame: &[u8],
        delay: Duration,
    ) -> Result<AckOutcome, TransportError> {
        let Some(Ok(Frame::Ack(ack))) = Frames::new(frame).next() else {
            panic!("not an ACK frame");
        };
        self.recovery.on_ack(
            self.now,
            space,
            &ack,
            delay,
            &mut self.path,
            self.handshake.confirmed,
            &mut self.fates,
        )
    }

    fn ack_data(&mut self, ranges: &[RangeInclusive<u64>]) -> AckOutcome {
        self.ack(Space::Data, ranges).unwrap()
    }

    fn timeout(&self) -> Option<Time> {
        self.recovery.timeout(&self.path, self.handshake)
    }

    /// Advances to the timeout and handles it.
    fn fire(&mut self) -> TimeoutAction {
        self.now = self.now.max(self.timeout().unwrap());
        self.recovery
            .handle_timeout(self.now, &mut self.path, self.handshake, &mut self.fates)
    }

    /// Returns the numbers of the data packets lost so far.
    fn lost_data(&self) -> Vec<u64> {
        self.fates.lost.iter().map(|&(_, number)| number).collect()
    }

    /// Creates a sender with a first RTT sample from packet 0.
    fn with_rtt(rtt: Duration) -> Self {
        let mut sender = Self::new(Side::Server);
        sender.send_data(1);
        sender.wait(rtt);
        sender.ack_data(&[0..=0]);
        sender.fates = Fates::default();
        *sender.controller.log() = Log {
            window: 1 << 40,
            ..Log::default()
        };
        sender
    }
}
