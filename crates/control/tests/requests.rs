//! Authorization of requests, and the handling of invalid ones.
#![allow(clippy::unwrap_used, reason = "a test ends by it")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::net::{IpAddr, SocketAddr};

use support::plane::{flow, ports};
use support::{Certificates, Process, config, status, wait_for};
use tokio::runtime::Runtime;
use weir_control::{AgentChannel, AgentOptions, AgentState, Client, ClientError, EpochFile};
use weir_sed::{Demand, DemandTable, FlowPattern};
use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

const LIMIT: usize = 20;

struct World {
    runtime: Runtime,
    certificates: Certificates,
    controller: Process,
}

impl World {
    fn new() -> Self {
        let certificates = Certificates::new();
        let state = EpochFile::ephemeral().unwrap();
        Self {
            runtime: Runtime::new().unwrap(),
            controller: Process::start_with(&certificates, state, config(), LIMIT),
            certificates,
        }
    }

    fn address(&self) -> SocketAddr {
        self.controller.address
    }

    fn client(&self, name: &str) -> Client {
        let credentials = self.certificates.of(name);
        let address = self.address().to_string();
        let client = Client::connect(&address, &credentials);
        self.runtime.block_on(client).unwrap()
    }

    fn register(
        &self,
        client: &Client,
        flows: impl Into<FlowPattern>,
        size: u64,
        nanos: u64,
    ) -> Result<(), ClientError> {
        let demand = Demand {
            size: ByteSize::from_bytes(size),
            within: Duration::from_nanos(nanos),
        };
        self.runtime.block_on(client.register(flows, demand))
    }

    fn registrations(&self) -> u64 {
        status(&self.runtime, &self.certificates, self.address()).registrations
    }
}

fn refused(result: Result<(), ClientError>, words: &[&str]) {
    let error = result.unwrap_err().to_string();
    for word in words {
        assert!(error.contains(word), "no {word:?} in: {error}");
    }
}

#[test]
fn applications_register_only_valid_flows_of_their_own() {
    let world = World::new();
    let client = world.client("application");
    world.register(&client, flow(1), 1000, 1000).unwrap();
    let largest = DemandTable::LARGEST.bytes();
    refused(
        world.register(&client, flow(2), 0, 1000),
        &["at least one byte"],
    );
    refused(
        world.register(&client, flow(2), 1 << 63, 1000),
        &["largest"],
    );
    refused(
        world.register(&client, flow(2), largest + 1, 1000),
        &["largest"],
    );
    refused(world.register(&client, flow(2), 1000, 0), &["future"]);
    let foreign = FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        ..flow(2)
    };
    refused(
        world.register(&client, foreign, 1000, 1000),
        &["127.0.0.1", "its own flows"],
    );
    assert_eq!(world.registrations(), 1);
    // Unless its certificate has the address.
    let host = world.client("host");
    world.register(&host, foreign, 1000, 1000).unwrap();
    let withdraw = |client: &Client, flow| world.runtime.block_on(client.withdraw(flow));
    assert!(withdraw(&client, foreign).is_err());
    assert!(withdraw(&host, foreign).unwrap());
    assert!(!withdraw(&host, foreign).unwrap());
    assert_eq!(world.registrations(), 1);
}

#[test]
fn the_registrations_of_a_client_are_limited() {
    let world = World::new();
    let client = world.client("application");
    let mut refused = 0;
    for number in 0..LIMIT as u16 * 3 {
        refused += usize::from(world.register(&client, flow(number), 1000, 1000).is_err());
    }
    assert_eq!(refused, LIMIT * 2);
    assert_eq!(world.registrations(), LIMIT as u64);
}

#[test]
fn a_certificate_is_valid_only_for_its_role() {
    let world = World::new();
    for other in ["operator", "switch", "controller"] {
        let client = world.client(other);
        refused(
            world.register(&client, flow(1), 1000, 1000),
            &["application.weir"],
        );
    }
    let client = world.client("application");
    let error = world.runtime.block_on(client.status(1)).unwrap_err();
    assert!(error.to_string().contains("operator.weir"), "{error}");
    for (name, holder) in [("tor", "application"), ("tor2", "switch")] {
        let channel = {
            let _entered = world.runtime.enter();
            AgentChannel::start(AgentOptions {
                controllers: vec![world.address().to_string()],
                credentials: world.certificates.of(holder),
                name: name.to_owned(),
                ports: ports(),
                wake: None,
                metrics: None,
            })
        };
        let state = channel.state();
        wait_for("a refusal", || {
            matches!(&*state.borrow(), AgentState::Failed(_))
        });
        let AgentState::Failed(why) = state.borrow().clone() else {
            unreachable!()
        };
        assert!(why.contains(&format!("{name}.switch.weir")), "{why}");
    }
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let world = World::new();
    let others = Certificates::new();
    let address = world.address().to_string();
    let credentials = others.of("application");
    let connected = world.runtime.block_on(async {
        let client = Client::connect(&address, &credentials).await?;
        let demand = Demand {
            size: ByteSize::from_bytes(1),
            within: Duration::from_nanos(1),
        };
        client.register(flow(1), demand).await
    });
    let error = connected.unwrap_err().to_string();
    assert!(error.contains("no controller"), "{error}");
    assert_eq!(world.registrations(), 0);
}
