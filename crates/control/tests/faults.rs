//! Failures of controllers, agents and the network between them: no window stays in force, and no flow
//! stays stopped, for longer than a lease.
#![allow(clippy::unwrap_used, reason = "a test ends by it")]
#![allow(dead_code, reason = "the support is shared with other tests")]
#![allow(
    clippy::print_stdout,
    reason = "how long windows outlive what ordered them is worth seeing"
)]

mod support;

use std::net::SocketAddr;
use std::time::Instant;

use support::plane::{Plane, flow, ports};
use support::wire::Wire;
use support::{Certificates, LEASE, Process, config, status, wait_for};
use tokio::runtime::Runtime;
use weir_control::{
    AgentChannel, AgentOptions, AgentState, Client, Controller, ControllerError, ControllerOptions,
    EpochFile, StateError, v1,
};
use weir_sed::Demand;
use weir_units::{ByteSize, Duration as Span};

/// The environment of a test, without the controller.
struct World {
    runtime: Runtime,
    certificates: Certificates,
}

impl World {
    fn new() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            certificates: Certificates::new(),
        }
    }

    fn controller(&self) -> Process {
        Process::start(&self.certificates, EpochFile::ephemeral().unwrap())
    }

    fn channel(&self, controllers: &[SocketAddr]) -> AgentChannel {
        let _entered = self.runtime.enter();
        AgentChannel::start(AgentOptions {
            controllers: controllers.iter().map(SocketAddr::to_string).collect(),
            credentials: self.certificates.of("switch"),
            name: "tor".to_owned(),
            ports: ports(),
            wake: None,
            metrics: None,
        })
    }

    fn status(&self, address: SocketAddr) -> v1::Status {
        status(&self.runtime, &self.certificates, address)
    }

    fn register(&self, address: SocketAddr, number: u16, demand: Demand) {
        self.runtime.block_on(async {
            let credentials = self.certificates.of("application");
            let client = Client::connect(&address.to_string(), &credentials)
                .await
                .unwrap();
            client.register(flow(number), demand).await.unwrap();
        });
    }

    /// Starts a plane whose flows have windows ordered by the controller at `asked`.
    fn governed_plane(&self, controllers: &[SocketAddr], asked: SocketAddr) -> Plane {
        let plane = Plane::start(self.channel(controllers));
        wait_for("an agent", || {
            self.status(asked)
                .switches
                .iter()
                .any(|switch| switch.attached)
        });
        for number in 1..=4 {
            plane.open(number);
        }
        wait_for("windows", || plane.all(|flow| flow.is_clamped()));
        plane
    }
}

fn demand() -> Demand {
    Demand {
        size: ByteSize::from_bytes(100_000_000),
        within: Span::from_secs(600),
    }
}

/// Waits until no window is in force, and prints how long that took.
fn released(plane: &Plane, what: &str) {
    let begin = Instant::now();
    wait_for("no windows", || plane.all(|flow| !flow.is_clamped()));
    println!(
        "{what}: windows released after {:?}, longest gap of a flow {:?}, lease {LEASE:?}",
        begin.elapsed(),
        plane.longest_gap()
    );
}

fn wait_for_progress(plane: &Plane) {
    let before: Vec<_> = plane.progress().iter().map(|flow| flow.bytes).collect();
    wait_for("progress of all flows", || {
        let now = plane.progress();
        now.iter()
            .zip(&before)
            .all(|(now, before)| now.bytes > before + 100_000)
    });
}

#[test]
fn windows_are_released_soon_after_the_controller_is_killed() {
    let world = World::new();
    let controller = world.controller();
    let plane = world.governed_plane(&[controller.address], controller.address);
    wait_for_progress(&plane);
    let status = world.status(controller.address);
    assert_eq!((status.all_flows, status.flows.len()), (4, 4));
    // On a busy machine senders are slow at times, and an empty queue is not controlled.
    wait_for("a governed port", || {
        world.status(controller.address).switches[0].ports[1].governed
    });
    controller.kill();
    released(&plane, "controller killed");
    wait_for_progress(&plane);
}

#[test]
fn a_restarted_controller_learns_flows_and_deadlines_from_switches() {
    let world = World::new();
    let directory = tempfile::tempdir().unwrap();
    let first = Process::start(
        &world.certificates,
        EpochFile::claim(directory.path()).unwrap(),
    );
    let address = first.address;
    let wire = Wire::to(&world.runtime, address);
    world.register(address, 1, demand());
    let plane = world.governed_plane(&[wire.address], address);
    let known = |status: &v1::Status| {
        let flows = status.flows.iter();
        flows.filter(|flow| flow.demand.is_some()).count()
    };
    wait_for("the demand", || known(&world.status(address)) == 1);
    first.kill();
    let mut state = None;
    // The lock is released with the last of its tasks.
    wait_for("the lock", || {
        state = EpochFile::claim(directory.path()).ok();
        state.is_some()
    });
    let second = Process::start(&world.certificates, state.unwrap());
    plane.reconnect(world.channel(&[second.address]));
    wait_for("all flows", || world.status(second.address).all_flows == 4);
    let status = world.status(second.address);
    assert_eq!(status.leader_epoch.as_ref().unwrap().term, 2);
    assert_eq!(known(&status), 1);
    assert!(status.flows[0].age_nanoseconds > 0);
    wait_for_progress(&plane);
    wait_for("windows", || plane.all(|flow| flow.is_clamped()));
}

#[test]
fn a_lost_control_channel_releases_windows_until_it_is_restored() {
    let world = World::new();
    let controller = world.controller();
    let wire = Wire::to(&world.runtime, controller.address);
    let plane = world.governed_plane(&[wire.address], controller.address);
    wire.cut(true);
    released(&plane, "wire cut");
    wait_for_progress(&plane);
    wire.cut(false);
    wait_for("windows", || plane.all(|flow| flow.is_clamped()));
    wait_for_progress(&plane);
}

#[test]
fn a_restarted_agent_releases_all_windows() {
    let world = World::new();
    let controller = world.controller();
    let plane = world.governed_plane(&[controller.address], controller.address);
    plane.restart_agent(world.channel(&[controller.address]));
    released(&plane, "agent restarted");
    // Flows whose start it has not seen are left alone; new flows are controlled.
    wait_for_progress(&plane);
    plane.open(9);
    wait_for("the new flow alone", || {
        world.status(controller.address).all_flows == 1
    });
    wait_for("its window", || {
        plane.progress().last().unwrap().is_clamped()
    });
    plane.close(9);
    wait_for("no flow", || {
        world.status(controller.address).all_flows == 0
    });
}

#[test]
fn a_second_controller_cannot_use_the_same_state_or_address() {
    let world = World::new();
    let directory = tempfile::tempdir().unwrap();
    let first = Process::start(
        &world.certificates,
        EpochFile::claim(directory.path()).unwrap(),
    );
    let error = EpochFile::claim(directory.path()).unwrap_err();
    assert!(matches!(error, StateError::Held(_)), "{error}");
    let options = ControllerOptions {
        listen: first.address,
        credentials: world.certificates.of("controller"),
        state: EpochFile::ephemeral().unwrap(),
        config: config(),
        rules: Vec::new(),
        flows_per_client: 10,
        policies: None,
        metrics: None,
    };
    let error = world
        .runtime
        .block_on(Controller::bind(options))
        .unwrap_err();
    assert!(matches!(error, ControllerError::AddressInUse(_)), "{error}");
}

#[test]
fn a_switch_changes_controllers_only_after_the_orders_expire() {
    let world = World::new();
    let (one, other) = (world.controller(), world.controller());
    let plane = world.governed_plane(&[one.address, other.address], one.address);
    assert!(world.status(other.address).switches.is_empty());
    one.kill();
    wait_for("the other one", || {
        world
            .status(other.address)
            .switches
            .iter()
            .any(|switch| switch.attached)
    });
    wait_for_progress(&plane);
    wait_for("windows", || plane.all(|flow| flow.is_clamped()));
}

#[test]
fn a_controller_ends_when_a_switch_follows_a_later_term() {
    let world = World::new();
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let first = Process::start(
        &world.certificates,
        EpochFile::claim(directory.path()).unwrap(),
    );
    // The state was copied: the lock is another one.
    let (from, to) = (
        directory.path().join("controller"),
        copy.path().join("controller"),
    );
    std::fs::copy(from, to).unwrap();
    let second = Process::start(&world.certificates, EpochFile::claim(copy.path()).unwrap());
    let wire = Wire::to(&world.runtime, second.address);
    let channel = world.channel(&[wire.address, first.address]);
    let state = channel.state();
    let plane = Plane::start(channel);
    let attached = || matches!(&*state.borrow(), AgentState::Attached { .. });
    wait_for("an agent", attached);
    for number in 1..=4 {
        plane.open(number);
    }
    wait_for("windows", || plane.all(|flow| flow.is_clamped()));
    second.kill();
    let error = first.ended().unwrap_err();
    assert!(
        matches!(
            error,
            ControllerError::Superseded {
                later: 2,
                own: 1,
                ..
            }
        ),
        "{error}"
    );
}
