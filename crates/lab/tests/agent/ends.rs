//! Workloads with synchronized flows: incast and epochs; and an agent's samples during a run.

use weir_lab::control::{AgentEvent, FlowOrder, HostCommand, LiveTransport, Role};
use weir_scenario::Workload;
use weir_units::{ByteSize, Duration};

use crate::support::{FLOW, Host, order, run, streams, tcp};

const SENDERS: u64 = 3;
const ROUNDS: u32 = 4;

async fn incast(transport: &LiveTransport) {
    let workload = Workload::Incast {
        response: ByteSize::from_bytes(50_000),
        rounds: ROUNDS,
        pause: Duration::from_micros(200),
        spread: Duration::from_micros(50),
    };
    let (mut senders, mut receiver) = (Host::start().await, Host::start().await);
    for flow in 0..SENDERS {
        let at_receiver = FlowOrder {
            flow,
            related_flows: SENDERS as u32,
            ..order(Role::Server, transport, &workload)
        };
        let listening = receiver.listen(at_receiver).await;
        let at_sender = FlowOrder {
            flow,
            peer: listening,
            server_fingerprint: Some(receiver.fingerprint.clone()),
            ..order(Role::Client, transport, &workload)
        };
        senders
            .order(&HostCommand::Start(Box::new(at_sender)))
            .await;
    }
    senders.begin().await;
    receiver.begin().await;
    for _ in 0..SENDERS {
        let outcome = senders.finished().await;
        assert_eq!(outcome.failure, None, "{transport:?}");
        assert!(outcome.ended.is_some());
    }
    senders.stop().await;
    let (mut rounds, mut delivered) = (0, 0);
    for event in receiver.stop().await {
        if let AgentEvent::Finished(outcome) = event {
            assert_eq!(outcome.failure, None, "{transport:?}");
            rounds += outcome.completions.len();
            delivered += outcome.counters.delivered.bytes();
        }
    }
    assert_eq!(rounds, ROUNDS as usize, "{transport:?}");
    assert_eq!(
        delivered,
        SENDERS * u64::from(ROUNDS) * 50_000,
        "{transport:?}"
    );
}

#[test]
fn an_incast_receiver_requests_from_all_senders_in_rounds() {
    for transport in streams() {
        run(incast(&transport));
    }
}

async fn epochs(transport: &LiveTransport) {
    const EPOCHS: u32 = 5;
    let workload = Workload::Epochs {
        request: ByteSize::from_bytes(100_000),
        response: ByteSize::from_bytes(100),
        count: EPOCHS,
    };
    let (mut client, mut server) = (Host::start().await, Host::start().await);
    let listening = server
        .listen(order(Role::Server, transport, &workload))
        .await;
    let order = FlowOrder {
        peer: listening,
        server_fingerprint: Some(server.fingerprint.clone()),
        ..order(Role::Client, transport, &workload)
    };
    client.order(&HostCommand::Start(Box::new(order))).await;
    client.begin().await;
    server.begin().await;
    for epoch in 0..u64::from(EPOCHS) {
        client.order(&HostCommand::Epoch { number: epoch }).await;
        let (number, took, attempts) = client
            .find(|event| match event {
                AgentEvent::EpochDone {
                    flow: FLOW,
                    number,
                    took,
                    attempts,
                    ..
                } => Some((number, took, attempts)),
                _ => None,
            })
            .await;
        assert_eq!((number, attempts), (epoch, 1), "{transport:?}");
        assert!(took.is_some(), "{transport:?}");
    }
    let outcome = client.finished().await;
    assert_eq!(outcome.completions.len(), EPOCHS as usize);
    assert_eq!(outcome.counters.delivered, ByteSize::from_bytes(500));
    client.stop().await;
    server.stop().await;
}

#[test]
fn one_request_in_each_epoch() {
    for transport in streams() {
        run(epochs(&transport));
    }
}

#[test]
fn samples_report_the_progress_of_flows() {
    run(async {
        let workload = Workload::Bulk;
        let (mut client, mut server) = (Host::start().await, Host::start().await);
        let listening = server.listen(order(Role::Server, &tcp(), &workload)).await;
        let order = FlowOrder {
            peer: listening,
            ..order(Role::Client, &tcp(), &workload)
        };
        client.order(&HostCommand::Start(Box::new(order))).await;
        client.begin().await;
        server.begin().await;
        let mut last = ByteSize::ZERO;
        // The flow may not have begun at the first samples.
        while last < ByteSize::from_mib(1) {
            let sample = server.sample().await;
            assert_eq!(sample.flows.len(), 1);
            assert!(sample.flows[0].counters.delivered >= last);
            last = sample.flows[0].counters.delivered;
        }
        let sample = client.sample().await;
        assert_eq!((sample.flows.len(), sample.flows[0].flow), (1, FLOW));
        assert!(sample.flows[0].window.is_some());
        assert!(sample.cpu > Duration::ZERO);
        client.stop().await;
        server.stop().await;
    });
}
