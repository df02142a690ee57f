//! DCQUIC endpoints as their own agents: a real controller, a switch that reports congestion, and a
//! connection whose window follows the orders.
#![allow(clippy::unwrap_used, reason = "a test ends by it")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::sync::Arc;

use support::{Certificates, LEASE, Process, config, wait_for};
use tokio::runtime::Runtime;
use weir_control::{
    AgentChannel, AgentOptions, AgentState, EpochFile, PortDescription, SenderChannel,
    SenderOptions, v1,
};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{ByteSize, Connection, Duration, Endpoint, SendStream};
use weir_sed::{ControllerConfig, SwitchReport};
use weir_units::Rate;

const RATE: Rate = Rate::from_mbps(100);

struct World {
    runtime: Runtime,
    certificates: Certificates,
    controller: Process,
    switch: AgentChannel,
    senders: SenderChannel,
    /// The end that sends the data.
    connection: Connection,
    _peer: Connection,
    _endpoints: [Endpoint; 2],
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let certificates = Certificates::new();
        let state = EpochFile::ephemeral().unwrap();
        let config = ControllerConfig {
            // Five packets altogether: less than a connection's initial window.
            threshold: ByteSize::from_bytes(6_000),
            recovery: ByteSize::from_bytes(3_000),
            ..config()
        };
        let controller = Process::start_with(&certificates, state, config, 1000);
        let address = controller.address.to_string();
        let entered = runtime.enter();
        let port = PortDescription {
            number: 0,
            name: "eth0".to_owned(),
            rate: RATE,
            buffer: None,
            behind: vec![([127, 0, 0, 0].into(), 8)],
        };
        let switch = AgentChannel::start(AgentOptions {
            controllers: vec![address.clone()],
            credentials: certificates.of("switch"),
            name: "tor".to_owned(),
            ports: vec![port],
            wake: None,
            metrics: None,
        });
        let senders = SenderChannel::start(SenderOptions {
            controllers: vec![address],
            credentials: certificates.of("application"),
        });
        drop(entered);
        for state in [switch.state(), senders.state()] {
            let is_attached = || matches!(*state.borrow(), AgentState::Attached { .. });
            wait_for("a controller", is_attached);
        }
        let (endpoints, connection, peer) = runtime.block_on(connected(&senders));
        Self {
            runtime,
            certificates,
            controller,
            switch,
            senders,
            connection,
            _peer: peer,
            _endpoints: endpoints,
        }
    }

    fn stream(&self) -> SendStream {
        self.runtime.block_on(self.connection.open_uni()).unwrap()
    }

    fn window(&self) -> u64 {
        self.connection.stats().paths[0].window.bytes()
    }

    fn status(&self) -> v1::Status {
        support::status(&self.runtime, &self.certificates, self.controller.address)
    }
}

async fn connected(senders: &SenderChannel) -> ([Endpoint; 2], Connection, Connection) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let pinned = ClientTls::pinned(identity.fingerprint()).build().unwrap();
    let loopback = "127.0.0.1:0".parse().unwrap();
    let server = Endpoint::builder().server(ServerTls::new(identity).build().unwrap());
    let server = server.bind(loopback).unwrap();
    let client = Endpoint::builder().client(pinned);
    let client = { client.allocator(Arc::new(senders.clone())) }
        .bind(loopback)
        .unwrap();
    let connecting = client.connect(server.local_address(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (connection, peer) = tokio::join!(connecting, accepting);
    ([client, server], connection.unwrap(), peer.unwrap())
}

#[test]
fn a_connection_with_a_deadline_has_the_window_of_the_controller() {
    let mut world = World::new();
    let free = world.window();
    let mut stream = world.stream();
    let size = ByteSize::from_bytes(12_000_000);
    stream.set_deadline(Some((size, Duration::from_secs(60))));
    wait_for("a flow", || world.status().all_flows == 1);
    let status = world.status();
    assert_eq!((status.senders, status.flows[0].port), (1, 0));
    let demand = status.flows[0].demand.unwrap();
    assert_eq!(demand.size_bytes, size.bytes());
    assert_eq!(world.window(), free, "nothing is congested yet");

    world.switch.report(SwitchReport::Congested { port: 0 });
    wait_for("a window", || world.window() < free);
    let ordered = world.status().flows[0].window_bytes.unwrap();
    wait_for("the one that was ordered", || world.window() == ordered);
    // It is renewed as long as the controller runs.
    std::thread::sleep(LEASE * 2);
    assert_eq!(world.window(), ordered);
    world.switch.report(SwitchReport::Recovered { port: 0 });
    wait_for("its own window", || world.window() >= free);

    // The orders of a killed controller end with the lease.
    world.switch.report(SwitchReport::Congested { port: 0 });
    wait_for("a window again", || world.window() < free);
    world.controller.kill();
    let (connection, mut state) = (world.connection.clone(), world.senders.state());
    wait_for("its own window without a controller", || {
        connection.stats().paths[0].window.bytes() >= free
    });
    wait_for("no controller", || {
        matches!(*state.borrow_and_update(), AgentState::Failed(_))
    });
}

#[test]
fn acknowledged_bytes_are_reported_and_finished_streams_removed() {
    let world = World::new();
    let mut stream = world.stream();
    let size = 2_000_000;
    stream.set_deadline(Some((ByteSize::from_bytes(size), Duration::from_secs(60))));
    let peer = world._peer.clone();
    let receiving = world.runtime.spawn(async move {
        let mut received = peer.accept_uni().await.unwrap();
        received.read_to_end(usize::MAX).await.unwrap().len()
    });
    let half = vec![7; size as usize / 2];
    world.runtime.block_on(async {
        stream.write_all(&half).await.unwrap();
        stream.flush();
    });
    wait_for("a half of it", || {
        let flows = world.status().flows;
        flows.len() == 1 && flows[0].acknowledged_bytes == size / 2
    });
    world.runtime.block_on(async {
        stream.finish_with(half.into()).await.unwrap();
        stream.acknowledged().await.unwrap();
        assert_eq!(receiving.await.unwrap(), size as usize);
    });
    wait_for("no flow", || world.status().all_flows == 0);
    assert_eq!(world.status().registrations, 0);
    // The next stream on the same connection is another flow.
    let mut next = world.stream();
    next.set_deadline(Some((ByteSize::from_bytes(5), Duration::from_secs(60))));
    wait_for("another flow", || world.status().all_flows == 1);
    assert_eq!(world.status().flows[0].acknowledged_bytes, 0);
    drop(next);
}
