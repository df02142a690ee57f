//! `weir sed agent`: its errors where it cannot work, and its life cycle between kernel TCPs.

use rustix::process::Signal;
use weir_sed::Demand;
use weir_units::{ByteSize, Duration};

use crate::namespace::{Namespace, possible};
use crate::network::{Row, Transfers, wait};
use crate::support::{command_output, run};

/// T_win at 50 Mbit/s: K is 45 KB, and C · RTT is small beside it.
const TWIN: u64 = 50_000;

#[test]
fn missing_or_conflicting_arguments_are_named() {
    let agent = |more: &[&str]| {
        let usual = ["sed", "agent", "--inline", "lan0", "wan0", "--name", "tor1"];
        run(&[&usual[..], more].concat())
    };
    agent(&["--rate", "1Gbps"]).failed(2, &["--controllers"]);
    let with = |more: &[&str]| agent(&[&["--controllers", "tor"], more].concat());
    with(&[]).failed(2, &["--rate"]);
    with(&["--rate", "fast"]).failed(2, &["--rate", "fast"]);
    with(&["--rate", "0bps"]).failed(2, &["--rate"]);
    with(&["--rate", "lan0=1Gbps"]).failed(2, &["--rate", "`wan0`"]);
    let both = ["--rate", "1Gbps"];
    let with_rate = |more: &[&str]| with(&[&both[..], more].concat());
    with_rate(&["--rate", "eth7=1Gbps"]).failed(2, &["--rate", "`eth7` is neither `lan0`"]);
    with_rate(&["--rate", "2Gbps"]).failed(2, &["--rate", "more than one"]);
    with_rate(&["--buffer", "1KB"]).failed(2, &["--buffer", "jumbo"]);
    with_rate(&["--behind", "lan0=10.0.0.0/33"]).failed(2, &["--behind", "0 to 32"]);
    with_rate(&["--certificates", "/nonexistent"]).failed(
        2,
        &["--certificates", "authority.pem", "weir sed certificates"],
    );
}

#[test]
fn windows_end_with_the_controller_and_all_state_with_the_agent() {
    if !possible("windows_end_with_the_controller_and_all_state_with_the_agent") {
        return;
    }
    let row = Row::new();
    // Twin is known in advance with the paper's allocation; by default it is measured.
    let allocation = ["--rtt", "500us", "--allocation", "paper"];
    let controller = row.controller(&allocation);
    let agent = row.agent(&["--rate", "50Mbps", "--buffer", "400KB", "--metrics", "9102"]);
    assert!(
        agent.first.contains("lan0 at 50Mbps, wan0 at 50Mbps"),
        "{}",
        agent.first
    );
    wait("the agent is attached", || row.is_attached());
    // 20 MB in a minute take a twentieth of the rate: four of them fit, with room for others.
    let demand = Demand {
        size: ByteSize::from_bytes(20_000_000),
        within: Duration::from_secs(60),
    };
    row.register(8001, demand);
    let urgent = Transfers::start(&row, 8001, 4);
    let others = Transfers::start(&row, 8002, 2);
    let are_lowered = |port, count| {
        let windows = row.windows(port);
        windows.len() == count && windows.iter().all(|window| *window <= TWIN)
    };
    wait("windows are lowered", || {
        are_lowered(8001, 4) && are_lowered(8002, 2)
    });
    urgent.wait_for_bytes(100_000);
    others.wait_for_bytes(10_000);
    // A port that has just recovered has no windows for a short time.
    wait("the controller's table has windows", || {
        let status = row.status().unwrap();
        let flows = status["flows"].as_array().unwrap();
        let with_window = flows.iter().filter(|flow| !flow["window"].is_null());
        with_window.count() == 6
    });
    let metrics = row.metrics();
    assert!(
        metrics.contains("weir_sed_agent_congested_total"),
        "{metrics}"
    );
    assert!(
        metrics.contains("weir_sed_agent_queued_bytes{interface=\"wan0\"}"),
        "{metrics}"
    );

    // Kill the controller during the transfers.
    controller.signal(Signal::KILL);
    let (status, _) = controller.end();
    assert!(!status.success());
    wait("windows are the receivers' own again", || {
        let windows = [row.windows(8001), row.windows(8002)].concat();
        windows.len() == 6 && windows.iter().all(|window| *window > TWIN)
    });
    agent.wait_for("no controller");
    urgent.wait_for_bytes(1_000_000);
    others.wait_for_bytes(1_000_000);

    // The next controller learns of the flows from the agent, even without registration.
    let controller = row.controller(&allocation);
    assert!(controller.first.contains("term 2"), "{}", controller.first);
    wait("windows are lowered again", || {
        are_lowered(8001, 4) && are_lowered(8002, 2)
    });
    urgent.wait_for_bytes(100_000);
    others.wait_for_bytes(10_000);

    agent.wait_for("with term 2");
    agent.signal(Signal::INT);
    let (status, told) = agent.end();
    assert!(status.success(), "{status}: {told}");
    for words in [
        "with term 1",
        "no controller",
        "with term 2",
        "nothing passes any more",
    ] {
        assert!(told.contains(words), "no {words:?} in: {told}");
    }
    assert!(!is_promiscuous(&row.middle, "lan0"));
}

#[test]
fn a_wrong_certificate_or_removed_interface_ends_the_agent() {
    if !possible("a_wrong_certificate_or_removed_interface_ends_the_agent") {
        return;
    }
    let row = Row::new();
    let mut command = row.middle.command(env!("CARGO_BIN_EXE_weir"));
    command
        .args([
            "sed", "agent", "--inline", "lan0", "lan0", "--rate", "1Gbps", "--name", "tor1",
        ])
        .args(["--controllers", "127.0.0.1"])
        .args(["--certificates", &row.path("certificates")]);
    command_output(command.output().unwrap()).failed(1, &["`lan0` is at both ends"]);
    let _controller = row.controller(&[]);
    // Its certificate belongs to another switch.
    let tor1 = row.path("certificates/tor1");
    for end in ["pem", "key"] {
        let copy = row.path(&format!("certificates/tor2.{end}"));
        std::fs::copy(format!("{tor1}.{end}"), copy).unwrap();
    }
    let agent = row.agent_of("tor2", &["--rate", "1Gbps"]);
    // Frames pass all the same.
    Transfers::start(&row, 8003, 1).wait_for_bytes(1_000_000);
    agent.wait_for("tor2.switch.weir");
    row.middle.ip("link delete wan0");
    let (status, told) = agent.end();
    assert_eq!(status.code(), Some(1), "{told}");
    for words in [
        "tor2.switch.weir",
        "interface wan0 is gone",
        "both its interfaces",
    ] {
        assert!(told.contains(words), "no {words:?} in: {told}");
    }
}

fn is_promiscuous(namespace: &Namespace, name: &str) -> bool {
    let mut command = namespace.command("ip");
    let output = command.args(["-d", "link", "show", name]).output().unwrap();
    !String::from_utf8(output.stdout)
        .unwrap()
        .contains("promiscuity 0")
}
