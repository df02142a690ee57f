//! The CE marks reported to the controller are those that the queue set.

use std::sync::{Arc, Mutex};

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, LossSample, PacketSent, Snapshot,
};
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_quic::{Congestion, TransportConfig};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::Ecn;

#[derive(Debug, Default)]
struct Record {
    ce_marked: u64,
    acked: u64,
    /// The algorithm's CE fraction at the end of each window.
    fractions: Vec<f64>,
}

/// An algorithm whose calls are recorded.
#[derive(Debug)]
struct Observed {
    inner: Box<dyn Controller>,
    record: Arc<Mutex<Record>>,
}

impl Controller for Observed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn on_sent(&mut self, sent: &PacketSent) {
        self.inner.on_sent(sent);
    }
    fn on_ack(&mut self, ack: &AckSample) {
        self.inner.on_ack(ack);
        let mut record = self.record.lock().unwrap();
        record.ce_marked += ack.ce_marked.bytes();
        record.acked += ack.acked.bytes();
        if ack.round_ended {
            record.fractions.extend(self.inner.snapshot().ce_fraction);
        }
    }
    fn on_loss(&mut self, loss: &LossSample) {
        self.inner.on_loss(loss);
    }
    fn on_packet_size(&mut self, size: ByteSize) {
        self.inner.on_packet_size(size);
    }
    fn window(&self) -> ByteSize {
        self.inner.window()
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.inner.pacing_rate()
    }
    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone(),
            record: self.record.clone(),
        })
    }
}

fn observed(algorithm: &str, record: &Arc<Mutex<Record>>) -> Congestion {
    let spec: AlgorithmSpec = algorithm.parse().unwrap();
    let record = record.clone();
    Congestion::Custom(Arc::new(move |context: &Context| {
        Box::new(Observed {
            inner: spec.build(context),
            record: record.clone(),
        })
    }))
}

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

/// Returns the CE-marked bytes reported to the controller, and the CE-marked packets that arrived.
fn marks(plan: Plan, marked: f64, faults: FaultSettings, packets: usize) -> (u64, u64, u64) {
    const PACKET: u64 = 1452;
    let record = Arc::new(Mutex::new(Record::default()));
    let mut client = plan.client.clone();
    client.congestion = observed("dctcp", &record);
    let mut world = World::new(Plan { client, ..plan });
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(20));
    let now = world.now;
    world.hosts[SERVER].arrived.clear();
    *record.lock().unwrap() = Record::default();
    world.egress_ports[CLIENT].set_rules(vec![Rule::mark_randomly(probability(marked))]);
    for pipe in &mut world.egress_ports {
        pipe.set_faults(now, faults);
    }
    let data = pattern(packets * PACKET as usize);
    let limit = Duration::from_secs(600);
    let got = world.transfer((CLIENT, client), (SERVER, server), &data, limit);
    assert!(got.is_some(), "the transfer did not end");
    for pipe in &mut world.egress_ports {
        pipe.set_faults(world.now, FaultSettings::default());
    }
    world.egress_ports[CLIENT].set_rules(Vec::new());
    world.run_for(Duration::from_secs(2));
    let arrived = world.hosts[SERVER]
        .arrived
        .get(&Ecn::Ce.bits())
        .copied()
        .unwrap_or(0);
    let record = record.lock().unwrap();
    (record.ce_marked, arrived, PACKET)
}

/// All packets are full except the last ones of the stream and retransmissions at its end.
fn assert_exact((told, arrived, packet): (u64, u64, u64)) {
    assert!(arrived > 20, "too few marks to tell: {arrived}");
    let difference = told.abs_diff(arrived * packet);
    assert!(
        difference < 4 * packet,
        "the controller was told of {told} bytes; {arrived} packets of {packet} arrived marked"
    );
}

#[test]
fn mark_counts_are_exact_without_faults() {
    for marked in [0.01, 0.1, 0.5] {
        let plan = Plan::default();
        assert_exact(marks(plan, marked, FaultSettings::default(), 4000));
    }
}

#[test]
fn mark_counts_are_exact_with_loss_and_reordering() {
    for seed in 0..4 {
        let faults = FaultSettings {
            loss: probability(0.02),
            reordering: Reordering {
                probability: probability(0.05),
                delay: Duration::from_micros(100),
            },
            ..Default::default()
        };
        let plan = Plan {
            seed,
            ..Plan::default()
        };
        assert_exact(marks(plan, 0.2, faults, 3000));
    }
}

#[test]
fn mark_counts_are_exact_with_delayed_acks() {
    let mut server = TransportConfig::data_center();
    server.ack_threshold = 1000;
    server.max_ack_delay = Duration::from_millis(2);
    let plan = Plan {
        server,
        ..Plan::default()
    };
    assert_exact(marks(plan, 0.1, FaultSettings::default(), 3000));
}

/// Returns DCTCP's α, averaged over `windows` windows, to compare with the fraction that the queue
/// marks.
fn alpha(algorithm: &str, fraction: f64, windows: usize) -> f64 {
    let record = Arc::new(Mutex::new(Record::default()));
    let mut plan = Plan {
        rate: Rate::from_gbps(100),
        ..Plan::default()
    };
    plan.client.congestion = observed(algorithm, &record);
    plan.client.pacing = false;
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    world.egress_ports[CLIENT].set_rules(vec![Rule::mark_randomly(probability(fraction))]);
    let warm_up = 200;
    let piece = pattern(2_000_000);
    while record.lock().unwrap().fractions.len() < windows + warm_up {
        let limit = Duration::from_secs(60);
        let got = world.transfer((CLIENT, client), (SERVER, server), &piece, limit);
        assert!(got.is_some(), "the transfer did not end");
    }
    let record = record.lock().unwrap();
    let fractions = &record.fractions[warm_up..warm_up + windows];
    fractions.iter().sum::<f64>() / windows as f64
}

fn assert_alpha(algorithm: &str, fraction: f64) {
    let alpha = alpha(algorithm, fraction, 10_000);
    let error = (alpha - fraction).abs() / fraction;
    assert!(
        error < 0.02,
        "α averages {alpha}, the queue marks {fraction}"
    );
}

/// At this rate DCTCP stays at its smallest window. With two packets in it the fraction of a window
/// is biased (0.544 instead of 0.5): a mark is acknowledged at once (RFC 9000, section 13.2.1) and
/// ends the window, so that marks determine where windows end. A floor of 32 packets makes the bias
/// small.
#[test]
fn alpha_is_right_at_50_percent_marking() {
    assert_alpha("dctcp,min_window=32", 0.5);
}

#[test]
fn alpha_is_right_at_10_percent_marking() {
    assert_alpha("dctcp", 0.1);
}

#[test]
fn alpha_is_right_at_1_percent_marking() {
    assert_alpha("dctcp", 0.01);
}
