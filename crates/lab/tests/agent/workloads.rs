//! Every workload over every transport.

use weir_lab::control::{AgentEvent, FlowOrder, FlowOutcome, HostCommand, LiveTransport, Role};
use weir_scenario::{ArrivalProcess, Arrivals, ConnectionUse, Distribution, QuicOptions, Workload};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::support::{Host, finished, order, outcomes, quic, run, streams, tcp, udp};

/// The outcomes of a flow at both ends.
struct Run {
    client: FlowOutcome,
    server: FlowOutcome,
    /// The outcomes of arrivals at the client and the server.
    arrivals: [Vec<FlowOutcome>; 2],
    /// A time shortly after the client's end.
    over: Time,
}

/// When a test ends a flow.
#[derive(Clone, Copy)]
enum Until {
    /// The client ends by itself.
    Done,
    /// This much has arrived at the server.
    Delivered(ByteSize),
    /// One of its arrivals is complete.
    Arrival,
}

/// Runs a flow until the condition holds, however slow the machine is.
async fn flow(transport: &LiveTransport, workload: &Workload, until: Until) -> Run {
    let (mut client, mut server) = (Host::start().await, Host::start().await);
    let listening = server
        .listen(order(Role::Server, transport, workload))
        .await;
    let order = FlowOrder {
        peer: listening,
        server_fingerprint: Some(server.fingerprint.clone()),
        ..order(Role::Client, transport, workload)
    };
    client.order(&HostCommand::Start(Box::new(order))).await;
    // The server's epoch is the earlier one: on its clock more packets are due, never fewer.
    for host in [&mut server, &mut client] {
        host.begin().await;
    }
    let mut of_client = Vec::new();
    match until {
        Until::Done => of_client.push(client.finished().await),
        Until::Delivered(amount) => {
            while server.sample().await.flows[0].counters.delivered < amount {}
        }
        Until::Arrival => of_client.push(client.find(complete_arrival).await),
    }
    of_client.extend(finished(client.stop().await));
    let mut of_server = Vec::new();
    server.order(&HostCommand::Sample).await;
    let over = server
        .find(|event| match event {
            AgentEvent::Sample(sample) => Some(sample.at),
            AgentEvent::Finished(outcome) => {
                of_server.push(*outcome);
                None
            }
            _ => None,
        })
        .await;
    of_server.extend(finished(server.stop().await));
    let (server_outcome, of_server) = outcomes(of_server);
    let (client_outcome, of_client) = outcomes(of_client);
    assert_eq!(client_outcome.failure, None, "{transport:?} {workload:?}");
    assert_eq!(server_outcome.failure, None, "{transport:?} {workload:?}");
    Run {
        client: client_outcome,
        server: server_outcome,
        arrivals: [of_client, of_server],
        over,
    }
}

fn complete_arrival(event: AgentEvent) -> Option<FlowOutcome> {
    match event {
        AgentEvent::Finished(outcome) if outcome.arrival.is_some() && outcome.ended.is_some() => {
            Some(*outcome)
        }
        _ => None,
    }
}

fn each(workload: &Workload, until: Until, check: impl Fn(&LiveTransport, Run)) {
    for transport in streams() {
        run(async { check(&transport, flow(&transport, workload, until).await) });
    }
}

#[test]
fn bulk() {
    each(
        &Workload::Bulk,
        Until::Delivered(ByteSize::from_mib(1)),
        |transport, run| {
            assert_eq!(run.client.counters.delivered, ByteSize::ZERO);
            assert_eq!(run.client.ended, None, "stopped");
            assert!(run.client.smoothed_rtt.is_some() && run.client.min_rtt.is_some());
            let expected = match transport {
                LiveTransport::Quic { .. } => "dctcp",
                LiveTransport::Tcp(_) => "reno",
                LiveTransport::Dcudp { .. } => "dcudp",
                _ => return,
            };
            assert_eq!(run.client.congestion.as_deref(), Some(expected));
        },
    );
}

#[test]
fn constant_rates() {
    let workload = Workload::Cbr {
        rate: Rate::from_mbps(80),
        packet: ByteSize::from_bytes(1000),
        arrivals: Arrivals::Regular,
    };
    let enough = Until::Delivered(ByteSize::from_bytes(50_000));
    // A packet every 100 µs, the first at once, and never more than were due.
    let due = |run: &Run| 1 + run.over.as_nanos() / 100_000;
    each(&workload, enough, |transport, run| {
        let most = ByteSize::from_bytes(due(&run) * 960);
        assert!(run.server.counters.delivered <= most, "{transport:?}");
    });
    run(async {
        let run = flow(&udp(), &workload, enough).await;
        assert!(run.client.datagrams <= due(&run));
        assert!(run.server.datagrams <= run.client.datagrams);
        let received = run.server.datagrams * 972;
        assert_eq!(
            run.server.counters.delivered,
            ByteSize::from_bytes(received)
        );
    });
}

#[test]
fn a_client_stops_at_its_stop_time() {
    run(async {
        let (mut client, mut server) = (Host::start().await, Host::start().await);
        let listening = server
            .listen(order(Role::Server, &tcp(), &Workload::Bulk))
            .await;
        let stop = Time::ZERO + Duration::from_millis(20);
        let order = FlowOrder {
            peer: listening,
            stop: Some(stop),
            ..order(Role::Client, &tcp(), &Workload::Bulk)
        };
        client.order(&HostCommand::Start(Box::new(order))).await;
        client.begin().await;
        let outcome = client.finished().await;
        assert_eq!((outcome.ended, outcome.failure), (None, None));
        assert!(client.sample().await.at >= stop);
        client.stop().await;
        server.stop().await;
    });
}

#[test]
fn transfers() {
    for bytes in [1, 24, 100_000, 3_000_000] {
        let size = ByteSize::from_bytes(bytes);
        let expected = size.max(ByteSize::from_bytes(24));
        each(
            &Workload::Transfer {
                size,
                rounds: 1,
                interval: None,
            },
            Until::Done,
            |transport, run| {
                assert_eq!(run.server.counters.delivered, expected, "{transport:?}");
                assert_eq!(run.server.completions.len(), 1, "{transport:?}");
                assert_eq!(
                    (run.client.size, run.server.size),
                    (Some(expected), Some(expected))
                );
                let took = run.server.completions[0].took;
                let started = run.client.started.unwrap();
                assert!(run.server.ended.unwrap() >= started + took);
                assert!(run.client.ended.is_some());
            },
        );
    }
}

fn requests(connection: ConnectionUse) -> Workload {
    Workload::RequestResponse {
        request: ByteSize::from_bytes(3_000),
        response: ByteSize::from_bytes(200_000),
        pause: Duration::from_micros(100),
        requests: Some(5),
        connection,
    }
}

#[test]
fn requests_on_one_connection_and_on_fresh_ones() {
    for (connection, connections) in [(ConnectionUse::Kept, 1), (ConnectionUse::Fresh, 5)] {
        each(&requests(connection), Until::Done, |transport, run| {
            assert_eq!(run.client.completions.len(), 5, "{transport:?}");
            assert_eq!(
                run.client.counters.delivered,
                ByteSize::from_bytes(1_000_000)
            );
            assert_eq!(run.server.counters.delivered, ByteSize::from_bytes(15_000));
            assert_eq!(run.client.connections, connections, "{transport:?}");
            assert_eq!(
                (run.client.requests_failed, run.client.requests_repeated),
                (0, 0)
            );
            assert!(run.client.ended.is_some());
        });
    }
}

#[test]
fn connections_to_a_known_peer_have_no_handshake() {
    let LiveTransport::Quic {
        options,
        congestion,
    } = quic()
    else {
        unreachable!("it is DCQUIC");
    };
    for (known_peers, expected) in [(false, 0), (true, 4)] {
        let transport = LiveTransport::Quic {
            options: QuicOptions {
                known_peers,
                ..options.clone()
            },
            congestion: congestion.clone(),
        };
        run(async {
            let run = flow(&transport, &requests(ConnectionUse::Fresh), Until::Done).await;
            assert_eq!(run.client.completions.len(), 5);
            for end in [&run.client, &run.server] {
                let connections = (end.connections, end.connections_without_handshake);
                assert_eq!(connections, (5, expected), "{known_peers}");
            }
        });
    }
}

#[test]
fn random_arrivals() {
    let workload = Workload::Poisson {
        mean_interval: Duration::from_millis(2),
        per: ArrivalProcess::Host,
        fan_in: 1,
        distribution: Distribution::web_search(),
    };
    each(&workload, Until::Arrival, |transport, run| {
        let [client, server] = &run.arrivals;
        let done: Vec<_> = server.iter().filter(|part| part.ended.is_some()).collect();
        assert!(!done.is_empty(), "{transport:?}");
        for part in done {
            let other = client.iter().find(|other| other.arrival == part.arrival);
            assert_eq!(part.size, other.unwrap().size, "{transport:?}");
            assert_eq!(Some(part.counters.delivered), part.size, "{transport:?}");
            assert_eq!(part.completions.len(), 1);
        }
        let sum: u64 = server
            .iter()
            .map(|part| part.counters.delivered.bytes())
            .sum();
        assert!(run.server.counters.delivered.bytes() >= sum);
    });
}
