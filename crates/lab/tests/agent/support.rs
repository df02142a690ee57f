//! A minimal director, and two hosts on loopback.

use std::net::SocketAddr;

use rustix::time::{ClockId, clock_gettime};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::JoinHandle;
use weir_congestion::AlgorithmSpec;
use weir_lab::agent::{self, AgentError};
use weir_lab::control::{
    self, AgentEvent, FlowOrder, FlowOutcome, HostChange, HostCommand, HostSample, LiveTransport,
    LoadFactors, Role,
};
use weir_scenario::{
    DcudpAckInterval, DcudpCondition, DcudpEcho, DcudpFeedback, DcudpOptions, DcudpQuit, DcudpRtt,
    QuicOptions, QuicPacketSize, TlsOptions, UdpEcn, Workload,
};
use weir_traffic::tcp::TcpSettings;
use weir_units::{ByteSize, Duration, Rate, Time};

/// The flow ID in tests with one flow.
pub(crate) const FLOW: u64 = 7;

/// An agent and the director's end of its control socket.
pub(crate) struct Host {
    pub(crate) orders: WriteHalf<DuplexStream>,
    pub(crate) events: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) fingerprint: String,
    pub(crate) task: JoinHandle<Result<(), AgentError>>,
}

impl Host {
    pub(crate) async fn start() -> Self {
        let (ours, theirs) = duplex(1 << 20);
        let (orders, events) = split(theirs);
        let change = |change: &HostChange| match change {
            HostChange::Address { .. } => Ok(()),
            _ => Err("there are no interfaces here".to_owned()),
        };
        let task = tokio::spawn(agent::run(orders, events, change));
        let (events, orders) = split(ours);
        let mut host = Self {
            orders,
            events: BufReader::new(events),
            fingerprint: String::new(),
            task,
        };
        match host.next().await {
            Some(AgentEvent::Ready { fingerprint }) => host.fingerprint = fingerprint,
            other => panic!("{other:?}"),
        }
        host
    }

    pub(crate) async fn order(&mut self, order: &HostCommand) {
        self.line(&control::encode(order).unwrap()).await;
    }

    pub(crate) async fn line(&mut self, line: &[u8]) {
        self.orders.write_all(line).await.unwrap();
    }

    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<AgentEvent> {
        let mut line = Vec::new();
        match self.events.read_until(b'\n', &mut line).await.unwrap() {
            0 => None,
            _ => Some(control::decode(&line).unwrap()),
        }
    }

    /// Skips events until `wanted` returns a value.
    pub(crate) async fn find<T>(&mut self, mut wanted: impl FnMut(AgentEvent) -> Option<T>) -> T {
        loop {
            let event = self.next().await.expect("the agent is gone");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    /// Requests a sample.
    pub(crate) async fn sample(&mut self) -> HostSample {
        self.order(&HostCommand::Sample).await;
        self.find(|event| match event {
            AgentEvent::Sample(sample) => Some(sample),
            _ => None,
        })
        .await
    }

    /// Waits for the outcome of a whole flow.
    pub(crate) async fn finished(&mut self) -> FlowOutcome {
        self.find(|event| match event {
            AgentEvent::Finished(outcome) if outcome.arrival.is_none() => Some(*outcome),
            _ => None,
        })
        .await
    }

    /// Starts a server, and waits until it listens.
    pub(crate) async fn listen(&mut self, order: FlowOrder) -> Vec<SocketAddr> {
        self.order(&HostCommand::Start(Box::new(order))).await;
        self.find(|event| match event {
            AgentEvent::Listening { addresses, .. } => Some(addresses),
            AgentEvent::Finished(outcome) => panic!("{outcome:?}"),
            _ => None,
        })
        .await
    }

    /// Begins the run now.
    pub(crate) async fn begin(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        let epoch = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let interval = None;
        self.order(&HostCommand::Begin { epoch, interval }).await;
    }

    /// Ends the run, and checks that the agent ends without error; returns its last events.
    pub(crate) async fn stop(mut self) -> Vec<AgentEvent> {
        self.order(&HostCommand::Stop).await;
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        assert!(matches!(events.last(), Some(AgentEvent::Stopped { .. })));
        self.task.await.unwrap().unwrap();
        events
    }
}

/// Returns the outcomes among events.
pub(crate) fn finished(events: Vec<AgentEvent>) -> Vec<FlowOutcome> {
    let outcomes = events.into_iter().filter_map(|event| match event {
        AgentEvent::Finished(outcome) => Some(*outcome),
        _ => None,
    });
    outcomes.collect()
}

/// Returns the outcome of the only flow, and those of its arrivals.
pub(crate) fn outcomes(outcomes: Vec<FlowOutcome>) -> (FlowOutcome, Vec<FlowOutcome>) {
    let (mut whole, parts): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|outcome| outcome.arrival.is_none());
    assert_eq!(whole.len(), 1, "{whole:?}");
    (whole.remove(0), parts)
}

/// Returns an order for one end of a flow that begins at once and has no end.
pub(crate) fn order(role: Role, transport: &LiveTransport, workload: &Workload) -> FlowOrder {
    FlowOrder {
        flow: FLOW,
        group: "group".to_owned(),
        role,
        transport: transport.clone(),
        workload: workload.clone(),
        write_size: ByteSize::from_bytes(960),
        local: vec!["127.0.0.1:0".parse().unwrap()],
        peer: Vec::new(),
        related_flows: 1,
        later_starts: Vec::new(),
        load: LoadFactors::default(),
        start: Time::ZERO,
        stop: None,
        failover: None,
        server_fingerprint: None,
        seed: 1,
    }
}

/// Returns the transports with streams.
pub(crate) fn streams() -> [LiveTransport; 4] {
    let tls = LiveTransport::Tls {
        tcp: TcpSettings::default(),
        tls: TlsOptions {
            record: ByteSize::from_kib(16),
            resume: true,
        },
    };
    [tcp(), tls, quic(), dcudp()]
}

pub(crate) fn tcp() -> LiveTransport {
    LiveTransport::Tcp(TcpSettings {
        congestion: Some("reno".to_owned()),
        ..TcpSettings::default()
    })
}

pub(crate) fn quic() -> LiveTransport {
    LiveTransport::Quic {
        options: QuicOptions {
            packet_size: QuicPacketSize::Interface,
            socket_buffers: Some(ByteSize::from_mib(1)),
            ecn: true,
            known_peers: false,
            migration: None,
        },
        congestion: AlgorithmSpec::new("dctcp").unwrap(),
    }
}

pub(crate) fn dcudp() -> LiveTransport {
    LiveTransport::Dcudp {
        options: DcudpOptions {
            rate: Some(Rate::from_gbps(1)),
            packet_size: ByteSize::from_bytes(1472),
            receive_window: 1024,
            send_buffer: ByteSize::from_mib(1),
            udp_mode: true,
            echo: DcudpEcho::UntilReduced,
            feedback: DcudpFeedback::Echo,
            ack_interval: DcudpAckInterval::Rtt,
            congestion_on_loss: false,
            initial_rtt: Duration::from_micros(100),
            min_ack_interval: Duration::from_micros(10),
            request_interval: Duration::from_millis(1),
            pacing_quantum: None,
            quit: DcudpQuit {
                window: 8,
                ecn_threshold: 0.5,
                rtt_threshold: 0.2,
                beta: 2.0,
                condition: DcudpCondition::Above,
                rtt: DcudpRtt::Smoothed,
                rtt_tolerance: Duration::from_micros(1),
            },
        },
        congestion: AlgorithmSpec::new("dcudp").unwrap(),
    }
}

pub(crate) fn udp() -> LiveTransport {
    LiveTransport::Udp { ecn: UdpEcn::Ect0 }
}

/// Runs a test on a runtime like a host's.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}
