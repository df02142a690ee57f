//! Events for observers; an observer changes nothing.

use std::sync::{Arc, Mutex};

use crate::world::{CLIENT, Plan, SERVER, World};
use weir_fabric::{FaultSettings, Probability};
use weir_quic::observe::{
    Interest, LossReason, Metrics, Observation, Observer, Observers, Phase, Subject,
};
use weir_quic::{Direction, MoveCause, PathEvent, Side, TransportConfig};
use weir_units::{Duration, Time};

/// The events of one connection's observer.
#[derive(Clone, Debug, Default, PartialEq)]
struct RecordedEvents {
    side: Option<Side>,
    /// The events as text: the order and the metrics.
    lines: Vec<String>,
    sent: u64,
    sent_bytes: u64,
    received: u64,
    dropped: u64,
    lost: u64,
    left_lost: u64,
    metrics: Option<Metrics>,
    phases: Vec<Phase>,
    key_phase: u64,
    moves: Vec<MoveCause>,
    decided: Vec<&'static str>,
    closed: u64,
    newest: Time,
    forgotten: bool,
}

struct Recorder {
    interest: Interest,
    heard: Arc<Mutex<RecordedEvents>>,
}

impl Observer for Recorder {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn on_event(&mut self, now: Time, event: &Observation<'_>) {
        let mut heard = self.heard.lock().unwrap();
        assert!(now >= heard.newest, "times go backwards");
        heard.newest = now;
        let is_first = heard.lines.is_empty();
        assert_eq!(
            is_first,
            matches!(event, Observation::Started(_)),
            "{event:?}"
        );
        heard.lines.push(format!("{now:?} {event:?}"));
        match event {
            Observation::Started(subject) => heard.side = Some(subject.side),
            Observation::PacketSent(packet) => {
                heard.sent += 1;
                heard.sent_bytes += packet.size as u64;
                assert!(packet.frames.clone().all(|frame| frame.is_ok()));
            }
            Observation::PacketReceived(packet) => {
                heard.received += 1;
                assert!(packet.frames.clone().count() > 0);
            }
            Observation::PacketDropped { .. } => heard.dropped += 1,
            Observation::PacketLost(lost) => {
                heard.lost += 1;
                heard.left_lost += u64::from(lost.cause == LossReason::PathLeft);
            }
            Observation::Metrics(metrics) => heard.metrics = Some(**metrics),
            Observation::Phase(phase) => heard.phases.push(*phase),
            Observation::KeysUpdated { phase } => heard.key_phase = *phase,
            Observation::Path(PathEvent::Moved { cause, .. }, _) => heard.moves.push(*cause),
            Observation::Moving(decision) => heard.decided.push(decision.cause.name()),
            Observation::Closed(_) => heard.closed += 1,
            _ => {}
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.heard.lock().unwrap().forgotten = true;
    }
}

/// Observes everything on a host.
struct Ears {
    interest: Interest,
    all: Mutex<Vec<Arc<Mutex<RecordedEvents>>>>,
}

impl Ears {
    fn on(world: &mut World, host: usize, interest: Interest) -> Arc<Self> {
        let ears = Arc::new(Self {
            interest,
            all: Mutex::default(),
        });
        world.hosts[host].endpoint.set_observers(Some(ears.clone()));
        ears
    }

    fn first(&self) -> RecordedEvents {
        self.all.lock().unwrap()[0].lock().unwrap().clone()
    }
}

impl Observers for Ears {
    fn observe(&self, _: &Subject) -> Option<Box<dyn Observer>> {
        let heard = Arc::new(Mutex::new(RecordedEvents::default()));
        self.all.lock().unwrap().push(heard.clone());
        Some(Box::new(Recorder {
            interest: self.interest,
            heard,
        }))
    }
}

/// Losses, marks, reordering, duplicates and damage.
fn impaired_plan() -> Plan {
    Plan {
        faults: FaultSettings {
            loss: Probability::new(0.02).unwrap(),
            duplication: Probability::new(0.01).unwrap(),
            corruption: Probability::new(0.01).unwrap(),
            ..FaultSettings::default()
        },
        ..Plan::default()
    }
}

/// Runs a transfer, a key update and the close.
fn transfer(world: &mut World) {
    let (client, server) = world.connected();
    let data = vec![7; 1_000_000];
    let (from, to) = ((CLIENT, client), (SERVER, server));
    let received = world.transfer(from, to, &data, Duration::from_secs(20));
    assert!(received == Some(data));
    let now = world.now;
    world.connection(CLIENT, client).update_keys(now).unwrap();
    world.run_for(Duration::from_millis(5));
    let now = world.now;
    world.connection(SERVER, server).close(now, 3, b"enough");
    world.run_for(Duration::from_secs(5));
}

#[test]
fn observed_events_add_up_to_the_statistics() {
    let mut world = World::new(impaired_plan());
    let ears = [CLIENT, SERVER].map(|host| Ears::on(&mut world, host, Interest::Everything));
    transfer(&mut world);
    for (ears, side) in ears.iter().zip([Side::Client, Side::Server]) {
        let heard = ears.first();
        assert_eq!(heard.side, Some(side));
        let totals = heard.metrics.unwrap().totals;
        assert_eq!(heard.sent, totals.packets_sent);
        assert_eq!(heard.sent_bytes, totals.bytes_sent.bytes());
        assert_eq!(heard.received, totals.packets_received);
        assert_eq!(heard.dropped, totals.packets_dropped);
        assert_eq!(heard.lost, totals.packets_lost);
        assert!(heard.dropped > 0 && heard.key_phase == 1 && heard.closed == 1);
        let end = match side {
            Side::Client => Phase::Draining,
            Side::Server => Phase::Closing,
        };
        let phases = [
            Phase::HandshakeComplete,
            Phase::HandshakeConfirmed,
            end,
            Phase::Drained,
        ];
        assert_eq!(heard.phases, phases);
        assert!(heard.forgotten);
    }
    let client = ears[0].first();
    assert!(client.lost > 0);
    assert!(client.metrics.unwrap().totals.bytes_retransmitted.bytes() > 0);
}

#[test]
fn events_are_deterministic_and_observing_changes_nothing() {
    let run = |interest: Option<Interest>| {
        let mut world = World::new(impaired_plan());
        let ears = interest.map(|interest| Ears::on(&mut world, CLIENT, interest));
        transfer(&mut world);
        let carried = [0, 1].map(|way| format!("{:?}", world.egress_ports[way].counters()));
        (ears.map(|ears| ears.first()), carried)
    };
    let (heard, carried) = run(Some(Interest::Everything));
    let (again, _) = run(Some(Interest::Everything));
    assert_eq!(heard, again);
    let (changes, _) = run(Some(Interest::Changes));
    assert_eq!(run(None).1, carried);
    let (all, changes) = (heard.unwrap(), changes.unwrap());
    assert_eq!((changes.sent, changes.received, changes.dropped), (0, 0, 0));
    assert_eq!(changes.metrics, all.metrics);
    assert_eq!(changes.phases, all.phases);
}

#[test]
fn moves_are_reported_with_their_cause() {
    let mut world = World::new(Plan {
        client: TransportConfig::data_center(),
        ..Plan::default()
    });
    let ears = Ears::on(&mut world, CLIENT, Interest::Everything);
    let other = world.add_interface();
    let (client, server) = world.connected();
    let now = world.now;
    world
        .connection(CLIENT, client)
        .add_local_address(now, other);
    world.run_for(Duration::from_millis(5));
    let path = {
        let stats = world.connection(CLIENT, client).stats();
        stats.paths.last().unwrap().id
    };
    let stream = {
        let connection = world.connection(CLIENT, client);
        let stream = connection.open(Direction::Bidirectional).unwrap();
        connection.write(stream, &[1; 10_000]).unwrap();
        stream
    };
    world.transmit();
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    connection.move_to(now, path, MoveCause::Requested).unwrap();
    let before = connection.stats().totals;
    world.run_for(Duration::from_millis(20));
    let connection = world.connection(SERVER, server);
    assert_eq!(connection.accept(Direction::Bidirectional), Some(stream));
    assert!(connection.read(stream, usize::MAX).unwrap().is_some());
    let heard = ears.first();
    assert_eq!(heard.moves, [MoveCause::Requested]);
    assert!(heard.left_lost > 0, "what was in flight is lost");
    assert_eq!(heard.lost, heard.metrics.unwrap().totals.packets_lost);
    // The counts of a closed path are kept.
    let now = world.now;
    let first = world.hosts[CLIENT].addresses[0];
    world
        .connection(CLIENT, client)
        .remove_local_address(now, first);
    let after = world.connection(CLIENT, client).stats();
    assert_eq!(after.paths.len(), 1);
    assert!(after.totals.packets_sent >= before.packets_sent);
    assert!(after.totals.packets_sent > after.paths[0].packets_sent);
}

#[test]
fn an_unauthenticated_client_is_not_reported() {
    let mut world = World::new(Plan::default());
    let ears = Ears::on(&mut world, SERVER, Interest::Everything);
    let garbage = {
        let mut datagram = vec![
            0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x90,
        ];
        datagram.resize(1200, 0x55);
        datagram
    };
    let remote = world.hosts[CLIENT].addresses[0];
    let now = world.now;
    let ecn = weir_wire::Ecn::NotEct;
    let mut datagram = garbage;
    let endpoint = &mut world.hosts[SERVER].endpoint;
    let route = endpoint.route(now, remote, None, ecn, &mut datagram);
    assert!(matches!(route, weir_quic::Route::Drop), "{route:?}");
    let heard = ears.first();
    assert!(heard.lines.is_empty() && heard.forgotten, "{heard:?}");
}
