//! Failures, and how they are reported.

use std::net::TcpListener;

use weir_lab::agent::AgentError;
use weir_lab::control::{
    AgentEvent, FlowFailure, FlowOrder, FlowOutcome, HostChange, HostCommand, LiveTransport, Role,
};
use weir_scenario::{ConnectionUse, Workload};
use weir_traffic::tcp::TcpSettings;
use weir_units::{ByteSize, Duration};

use crate::support::{FLOW, Host, finished, order, outcomes, quic, run, tcp, udp};

fn requests(count: u32) -> Workload {
    Workload::RequestResponse {
        request: ByteSize::from_bytes(100),
        response: ByteSize::from_bytes(1000),
        pause: Duration::ZERO,
        requests: Some(count),
        connection: ConnectionUse::Kept,
    }
}

/// Returns the outcome of a client without a server.
async fn client_outcome(order: FlowOrder) -> FlowOutcome {
    let mut host = Host::start().await;
    host.order(&HostCommand::Start(Box::new(order))).await;
    host.begin().await;
    let outcome = host.finished().await;
    host.stop().await;
    outcome
}

/// Returns an address without a listener.
fn unused_address() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn a_connection_that_is_refused() {
    run(async {
        let peer = unused_address();
        let outcome = client_outcome(FlowOrder {
            peer: vec![peer],
            ..order(Role::Client, &tcp(), &requests(1))
        })
        .await;
        assert_eq!(outcome.failure, Some(FlowFailure::Refused { peer }));
        assert_eq!((outcome.requests_failed, outcome.ended), (1, None));
    });
}

#[test]
fn an_order_that_cannot_be_carried_out() {
    let nosuch = LiveTransport::Tcp(TcpSettings {
        congestion: Some("nosuch".to_owned()),
        ..TcpSettings::default()
    });
    let peer = vec![unused_address()];
    let client = |transport| order(Role::Client, transport, &Workload::Bulk);
    let wrong = [
        FlowOrder {
            peer: peer.clone(),
            ..client(&nosuch)
        },
        FlowOrder {
            peer: peer.clone(),
            ..client(&quic())
        },
        FlowOrder {
            peer: peer.clone(),
            ..client(&udp())
        },
        client(&tcp()),
        order(Role::Server, &nosuch, &Workload::Bulk),
    ];
    for order in wrong {
        run(async {
            let outcome = client_outcome(order.clone()).await;
            let refused = matches!(outcome.failure, Some(FlowFailure::Order { .. }));
            assert!(refused, "{order:?}: {:?}", outcome.failure);
            // A client finds out at its start.
            let is_client = order.role == Role::Client;
            assert_eq!(outcome.started.is_some(), is_client, "{order:?}");
        });
    }
}

#[test]
fn a_server_with_another_certificate() {
    run(async {
        let (mut server, other) = (Host::start().await, Host::start().await);
        let workload = requests(1);
        let listening = server.listen(order(Role::Server, &quic(), &workload)).await;
        let outcome = client_outcome(FlowOrder {
            peer: listening,
            server_fingerprint: Some(other.fingerprint.clone()),
            ..order(Role::Client, &quic(), &workload)
        })
        .await;
        let failure = outcome.failure.unwrap();
        assert!(matches!(failure, FlowFailure::Lost { .. }), "{failure:?}");
        other.stop().await;
        let (at_server, _) = outcomes(finished(server.stop().await));
        assert_eq!(at_server.failure, None, "the server goes on");
    });
}

#[test]
fn a_peer_that_dies() {
    run(async {
        let (mut client, mut server) = (Host::start().await, Host::start().await);
        let workload = requests(u32::MAX);
        let listening = server.listen(order(Role::Server, &tcp(), &workload)).await;
        let order = FlowOrder {
            peer: listening,
            ..order(Role::Client, &tcp(), &workload)
        };
        client.order(&HostCommand::Start(Box::new(order))).await;
        client.begin().await;
        server.begin().await;
        // The transfer is in progress when the server is killed.
        while client.sample().await.flows[0].counters.delivered.is_zero() {}
        server.task.abort();
        let outcome = client.finished().await;
        assert_eq!(outcome.requests_failed, 1);
        assert!(!outcome.completions.is_empty());
        client.stop().await;
    });
}

#[test]
fn requests_fail_over_to_the_next_address() {
    run(async {
        // This listener accepts connections and never answers.
        let dark = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = Host::start().await;
        let workload = requests(3);
        let listening = server.listen(order(Role::Server, &tcp(), &workload)).await;
        let outcome = client_outcome(FlowOrder {
            local: vec![
                "127.0.0.2:0".parse().unwrap(),
                "127.0.0.3:0".parse().unwrap(),
            ],
            peer: vec![dark.local_addr().unwrap(), listening[0]],
            failover: Some(Duration::from_millis(30)),
            ..order(Role::Client, &tcp(), &workload)
        })
        .await;
        assert_eq!(outcome.failure, None);
        assert_eq!((outcome.requests_failed, outcome.requests_repeated), (0, 1));
        assert_eq!((outcome.completions.len(), outcome.connections), (3, 2));
        assert!(outcome.completions[0].took >= Duration::from_millis(30));
        server.stop().await;
    });
}

#[test]
fn a_replacement_address_is_used() {
    run(async {
        let (mut client, mut server) = (Host::start().await, Host::start().await);
        let workload = requests(1);
        let listening = server.listen(order(Role::Server, &tcp(), &workload)).await;
        let change = HostChange::Address {
            interface: "lo".to_owned(),
            was: "192.0.2.1".parse().unwrap(),
            is: "127.0.0.5".parse().unwrap(),
        };
        client.order(&HostCommand::Host(change.clone())).await;
        assert_eq!(
            client.next().await,
            Some(AgentEvent::Changed {
                change,
                error: None,
            })
        );
        let down = HostChange::InterfaceDown {
            interface: "lo".to_owned(),
        };
        client.order(&HostCommand::Host(down)).await;
        let told = client.next().await;
        assert!(matches!(
            told,
            Some(AgentEvent::Changed { error: Some(_), .. })
        ));
        let order = FlowOrder {
            local: vec!["192.0.2.1:0".parse().unwrap()],
            peer: listening,
            ..order(Role::Client, &tcp(), &workload)
        };
        client.order(&HostCommand::Start(Box::new(order))).await;
        client.begin().await;
        let outcome = client.finished().await;
        assert_eq!((outcome.flow, outcome.failure), (FLOW, None));
        client.stop().await;
        server.stop().await;
    });
}

#[test]
fn a_lost_or_invalid_director_ends_the_agent() {
    run(async {
        let mut host = Host::start().await;
        host.order(&HostCommand::Start(Box::new(order(
            Role::Server,
            &tcp(),
            &Workload::Bulk,
        ))))
        .await;
        let Host {
            orders,
            events,
            task,
            ..
        } = host;
        drop((orders, events));
        let end = task.await.unwrap();
        let gone = matches!(end, Err(AgentError::DirectorGone | AgentError::Control(_)));
        assert!(gone, "{end:?}");

        let mut host = Host::start().await;
        host.line(b"{\"order\":\"dance\"}\n").await;
        let end = host.task.await.unwrap();
        assert!(matches!(end, Err(AgentError::Message(_))), "{end:?}");
    });
}
