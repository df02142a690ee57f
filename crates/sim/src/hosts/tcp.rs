//! Endpoints of TCP connections, with or without TLS.

use std::sync::{Arc, PoisonError, RwLock};

use weir_congestion::{AlgorithmSpec, Context, Controller, Deadline};
use weir_counters::FlowCounters;
use weir_scenario::{Pacing, PartialAckTimer, Recovery, RtoFloor, TcpEcn, TcpOptions, TlsOptions};
use weir_tcp::{
    Config, ConfigError, Connection, ControllerFactory, ControllerSource, DelayedAcks, EcnMode,
    Ending, LossDetection, State,
};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Segment, Sequence};

use super::end::End;
use super::tls::{Step, Tls};
use crate::flows::PathView;

/// The tick of the time stamp clock: 1 ms, as in Linux.
const TICK: Duration = Duration::from_millis(1);
/// Linux's factors: twice the window per round trip in slow start, 1.2 times afterwards
/// (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const LINUX_PACING: weir_tcp::Pacing = weir_tcp::Pacing::Window {
    slow_start: 2.0,
    avoidance: 1.2,
};

/// The settings of a group's connections.
#[derive(Debug)]
pub(crate) struct TcpSetup {
    config: Arc<Config>,
    /// Whether connections begin with a handshake, and end with FINs.
    pub(crate) handshake: bool,
    small_queues: bool,
    controllers: Arc<Controllers>,
    /// Whether controllers may be built when connections begin to send.
    builds_late: bool,
    tls: Option<TlsOptions>,
}

/// The congestion control of a group.
#[derive(Debug)]
struct Controllers {
    congestion: RwLock<AlgorithmSpec>,
    packet_size: ByteSize,
    is_paced: bool,
}

impl ControllerFactory for Controllers {
    fn build(&self, seed: u64) -> Box<dyn Controller> {
        let congestion = self
            .congestion
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        congestion.build(&Context {
            packet_size: self.packet_size,
            seed,
            is_paced: self.is_paced,
        })
    }
}

impl TcpSetup {
    pub(crate) fn new(
        options: &TcpOptions,
        congestion: &AlgorithmSpec,
        tls: Option<TlsOptions>,
    ) -> Result<Self, ConfigError> {
        let delayed_ack = options.delayed_ack;
        let config = Config {
            mss: options.mss,
            window_scale: Some(window_scale(options.receive_buffer)),
            sack: options.sack,
            timestamps: options.timestamps.then_some(TICK),
            ecn: match options.ecn {
                TcpEcn::Off => EcnMode::Off,
                TcpEcn::Rfc3168 => EcnMode::Classic,
                TcpEcn::Dctcp => EcnMode::Dctcp,
            },
            send_buffer: options.send_buffer,
            receive_buffer: options.receive_buffer,
            delayed_acks: (delayed_ack.ack_every > 1).then_some(DelayedAcks {
                segments: delayed_ack.ack_every,
                timeout: delayed_ack.delayed_ack_timeout,
                quick_segments: delayed_ack.quick_ack_segments,
            }),
            push_small_windows: options.push_small_windows,
            nagle: options.nagle,
            burst_segments: options.tso_segments,
            pacing: match options.pacing {
                Pacing::Controller => weir_tcp::Pacing::Controller,
                Pacing::Window => LINUX_PACING,
            },
            loss_detection: match options.recovery {
                // Without SACK there is no choice.
                Some(Recovery::Rack) | None => LossDetection::RackTlp,
                Some(Recovery::Rfc6675) => LossDetection::DuplicateThreshold,
            },
            limited_transmit: options.limited_transmit,
            proportional_rate_reduction: options.prr,
            idle_restart: options.idle_restart,
            initial_rto: options.initial_rto,
            min_rto: options.min_rto,
            rto_floor: match options.rto_floor {
                RtoFloor::Linux => weir_tcp::RtoFloor::Variation,
                RtoFloor::Rfc6298 => weir_tcp::RtoFloor::Whole,
            },
            early_timer_margin: options.early_timer_margin,
            max_rto: options.max_rto,
            frto: options.frto,
            partial_ack_timer: match options.partial_ack_timer {
                PartialAckTimer::Each => weir_tcp::PartialAckTimer::Each,
                PartialAckTimer::First => weir_tcp::PartialAckTimer::First,
            },
            ..Config::default()
        };
        config.check()?;
        let controllers = Controllers {
            congestion: RwLock::new(congestion.clone()),
            packet_size: config.mss,
            is_paced: config.pacing != weir_tcp::Pacing::Controller,
        };
        Ok(Self {
            builds_late: !controllers.build(0).wants_delivery(),
            config: Arc::new(config),
            handshake: options.handshake,
            small_queues: options.small_queues,
            controllers: Arc::new(controllers),
            tls,
        })
    }

    /// Sets the congestion control of connections that have not begun to send.
    pub(crate) fn set_congestion(&self, congestion: &AlgorithmSpec) {
        let current = self.controllers.congestion.write();
        *current.unwrap_or_else(PoisonError::into_inner) = congestion.clone();
    }

    /// Whether an end has to be notified of the peer application's writes.
    pub(crate) fn has_records(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether a later connection between two hosts can resume a session of an earlier one.
    pub(crate) fn resumes(&self) -> bool {
        self.tls.is_some_and(|tls| tls.resume)
    }

    /// Creates one end of a connection, which may resume an earlier session. Both ends get the same seeds.
    pub(crate) fn end(
        &self,
        now: Time,
        initiator: bool,
        is_resumed: bool,
        congestion: u64,
        sequence: u64,
    ) -> TcpEnd {
        let controller = if self.builds_late {
            let factory = Arc::clone(&self.controllers) as Arc<dyn ControllerFactory>;
            ControllerSource::AtFirstWrite {
                factory,
                seed: congestion,
            }
        } else {
            self.controllers.build(congestion).into()
        };
        let (first, second) = (
            Sequence::new(sequence as u32),
            Sequence::new((sequence >> 32) as u32),
        );
        let (own, peer) = if initiator {
            (first, second)
        } else {
            (second, first)
        };
        let config = &self.config;
        let connection = match (self.handshake, initiator) {
            (false, _) => Connection::established(now, config, config, controller, own, peer),
            (true, true) => Connection::client(now, config, controller, own),
            (true, false) => Connection::server(config, controller, own),
        };
        let tls = |options| Tls::new(options, initiator, is_resumed);
        let mut end = TcpEnd {
            connection: connection
                .expect("the configuration was checked when the group was set up"),
            small_queues: self.small_queues,
            sends_bursts: self.config.burst_segments > 1,
            told: false,
            extras: self.tls.as_ref().map(|options| {
                Box::new(Extras {
                    tls: Some(tls(options)),
                    deadline: None,
                })
            }),
        };
        end.with_tls(Tls::begin);
        end
    }
}

/// Returns the smallest window scale that covers the whole receive buffer, limited to 14 (RFC 7323, section
/// 2.3).
fn window_scale(buffer: Option<ByteSize>) -> u8 {
    let Some(buffer) = buffer else {
        return 14;
    };
    let fits = |scale: &u8| buffer.bytes() >> scale <= u64::from(u16::MAX);
    (0..14).find(fits).unwrap_or(14)
}

/// One end of a TCP connection.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TcpEnd {
    /// Whether it waits while its host's queue is long.
    small_queues: bool,
    sends_bursts: bool,
    /// Whether the application has been notified of the close.
    told: bool,
    extras: Option<Box<Extras>>,
    pub(super) connection: Connection,
}

/// What few ends have.
#[derive(Debug, Default)]
struct Extras {
    tls: Option<Tls>,
    /// When its data must have arrived.
    deadline: Option<Time>,
}

impl TcpEnd {
    /// Whether the connection alone decides what its segments do: there is no TLS, and no deadline.
    #[inline(always)]
    pub(super) fn is_bare(&self) -> bool {
        self.extras.is_none()
    }

    #[inline]
    pub(super) fn receive(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if self.extras.is_some() {
            return self.receive_with_extras(now, segment, ecn);
        }
        self.connection.receive(now, segment, ecn);
    }

    #[inline(never)]
    fn receive_with_extras(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        let deadline = self.extras.as_ref().and_then(|extras| extras.deadline);
        if let Some(deadline) = deadline {
            self.update_deadline(now, deadline);
        }
        self.connection.receive(now, segment, ecn);
        let received = self.connection.received().bytes();
        self.with_tls(|tls, out| tls.on_received(received, out));
    }

    /// Returns the state of TLS, if it is in use.
    #[inline]
    fn tls(&self) -> Option<&Tls> {
        self.extras.as_ref()?.tls.as_ref()
    }

    fn tls_mut(&mut self) -> Option<&mut Tls> {
        self.extras.as_mut()?.tls.as_mut()
    }

    /// Sets the time by which its data must have arrived.
    pub(crate) fn set_deadline(&mut self, deadline: Time) {
        self.extras.get_or_insert_default().deadline = Some(deadline);
    }

    /// Passes the remaining data and time to the congestion control.
    fn update_deadline(&mut self, now: Time, deadline: Time) {
        self.connection.set_deadline(Some(Deadline {
            remaining: self.connection.remaining(),
            time_left: deadline.checked_since(now).unwrap_or(Duration::ZERO),
        }));
    }

    /// Calls TLS, if there is any, and applies its steps to TCP.
    fn with_tls(&mut self, act: impl FnOnce(&mut Tls, &mut Vec<Step>)) {
        let Some(tls) = self.tls_mut() else {
            return;
        };
        let mut steps = Vec::new();
        act(tls, &mut steps);
        for step in steps {
            match step {
                Step::Send(size) => self.connection.write(ByteSize::from_bytes(size)),
                Step::SendEndlessly => self.connection.write_endlessly(),
                Step::Close => self.connection.close(),
            }
        }
    }

    /// Returns the largest payload of a packet.
    #[inline]
    pub(super) fn segment_size(&self) -> u32 {
        // The maximum segment size has 16 bits.
        self.connection.segment_size().bytes() as u32
    }

    /// Whether it may pass several segments at once to its host.
    #[inline]
    pub(super) fn sends_bursts(&self) -> bool {
        self.sends_bursts
    }

    #[inline]
    pub(super) fn has_small_queues(&self) -> bool {
        self.small_queues
    }

    /// Returns the bytes delivered to the application.
    #[inline]
    pub(super) fn delivered(&self) -> u64 {
        match self.tls() {
            None => self.connection.received().bytes(),
            Some(tls) => tls.opened,
        }
    }

    /// Whether the connection has just been closed.
    #[inline]
    pub(super) fn take_closed(&mut self) -> bool {
        if self.told || !self.is_closed() {
            return false;
        }
        self.told = true;
        true
    }

    pub(crate) fn write(&mut self, size: ByteSize) {
        match self.tls() {
            None => self.connection.write(size),
            Some(_) => self.with_tls(|tls, out| tls.write(size.bytes(), out)),
        }
    }

    pub(crate) fn write_endlessly(&mut self) {
        match self.tls() {
            None => self.connection.write_endlessly(),
            Some(_) => self.with_tls(Tls::write_endlessly),
        }
    }

    pub(crate) fn close(&mut self) {
        match self.tls() {
            None => self.connection.close(),
            Some(_) => self.with_tls(Tls::close),
        }
    }

    /// Announces a write of the peer's application, as TLS record headers would.
    pub(crate) fn expect(&mut self, size: ByteSize) {
        if let Some(tls) = self.tls_mut() {
            tls.expect(size.bytes());
        }
    }

    /// Announces that the peer's application sends endlessly.
    pub(crate) fn expect_endlessly(&mut self) {
        if let Some(tls) = self.tls_mut() {
            tls.expect_endlessly();
        }
    }
}

impl End for TcpEnd {
    fn achieved(&self) -> FlowCounters {
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered()),
            ..self.connection.flow_counters()
        }
    }

    fn path(&self) -> PathView {
        let snapshot = self.connection.snapshot();
        PathView {
            smoothed_rtt: snapshot.min_rtt.map(|_| snapshot.smoothed_rtt),
            min_rtt: snapshot.min_rtt,
        }
    }

    fn window(&self) -> Option<ByteSize> {
        let window = self.connection.congestion_window();
        (window < ByteSize::MAX).then_some(window)
    }

    fn ce_fraction(&self) -> Option<f64> {
        self.connection.snapshot().controller.ce_fraction
    }

    fn is_closed(&self) -> bool {
        matches!(self.connection.state(), State::Closed | State::TimeWait)
    }

    fn has_failed(&self) -> bool {
        let ending = self.connection.ending();
        ending.is_some_and(|ending| ending != Ending::Closed)
    }
}
