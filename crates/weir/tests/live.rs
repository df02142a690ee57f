//! `weir run --live` and `weir lab`, where this process may create network namespaces.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{command_output, run, weir};

/// A sender and a receiver with a switch at each end of a 100 Mbps link.
const DUMBBELL: &str = r#"
    title = "A dumbbell, live"
    source = "a test"
    duration = "1s"
    warm_up = "300ms"

    [dumbbell]
    rate = "100Mbps"
    queue = { kind = "drop-tail", buffer = "100KB" }
    [dumbbell.senders.sender]
    rtt = "1ms"

    [groups.bulk]
    from = "sender"
    to = "receiver"
    workload = "bulk"
"#;

/// Returns whether live runs are possible here; prints the reason if not.
fn possible(test: &str) -> bool {
    let reason = match (
        rustix::process::geteuid().is_root(),
        Path::new("/dev/net/tun").exists(),
    ) {
        (true, true) => return true,
        (false, _) => "network namespaces take root",
        (_, false) => "there is no /dev/net/tun",
    };
    eprintln!("SKIPPED: {test}: {reason}");
    false
}

fn scenario(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("scenario.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Returns the host processes of a run, once all have been started.
fn hosts(director: u32) -> Vec<i32> {
    let path = format!("/run/weir/lab/{director}/hosts.json");
    for _ in 0..1000 {
        if let Ok(bytes) = fs::read(&path)
            && let Ok(record) = serde_json::from_slice::<Value>(&bytes)
        {
            let hosts = record["hosts"].as_array().unwrap();
            let process = |host: &Value| i32::try_from(host["process"].as_i64().unwrap()).unwrap();
            return hosts.iter().map(process).collect();
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{path} never came");
}

/// Waits until all of these processes have ended.
fn wait_until_ended(processes: &[i32]) {
    let is_there = |process: &i32| Path::new(&format!("/proc/{process}")).exists();
    for _ in 0..500 {
        if !processes.iter().any(is_there) {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("some of {processes:?} are still there");
}

fn start(path: &Path, more: &[&str]) -> Child {
    let mut command = weir(&["run", "--live", "--json"]);
    let command = command.arg(path).args(more);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_bulk_flow_has_about_the_rate_of_its_link() {
    if !possible("a_bulk_flow_has_about_the_rate_of_its_link") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), DUMBBELL);
    let out = directory.path().join("out");
    let path = path.to_str().unwrap();
    let said = run(&[
        "run",
        "--live",
        "--json",
        path,
        "--out",
        out.to_str().unwrap(),
    ]);
    let summary = said.json();
    assert_eq!(summary["world"], "live");
    let goodput = summary["groups"]["bulk"]["goodput_bps"].as_f64().unwrap();
    assert!((60e6..100e6).contains(&goodput), "{summary:#}");
    let port = &summary["ports"]["bottleneck"];
    assert!(port["packets"].as_u64().unwrap() > 3_000, "{summary:#}");
    assert!(summary["hosts"]["sender"]["cpu_s"].as_f64().unwrap() > 0.0);
    assert!(summary["emulation"]["faithful"].is_boolean());
    for file in [
        "summary.json",
        "report.html",
        "flows.parquet",
        "samples.parquet",
    ] {
        assert!(out.join(file).exists(), "{file}");
    }
}

/// DCUDP over a link of 100 Mbps that marks above the burst size of a host.
const DCUDP: &str = r#"
    title = "DCUDP, live and simulated"
    source = "a test"
    duration = "2s"
    warm_up = "500ms"

    [dumbbell]
    rate = "100Mbps"
    queue = { kind = "two-threshold", ecn_min = "30KB", ecn_max = "150KB", probability = 0.1, buffer = "4MB" }
    [dumbbell.senders.sender]
    rtt = "1ms"
    rate = "1Gbps"

    [groups.flow]
    from = "sender"
    to = "receiver"
    transport = "dcudp"
    congestion = "dcudp-proportional"
    workload = "bulk"
    dcudp = { rate = "160Mbps", quit = { window = 64 } }
"#;

#[test]
fn live_dcudp_reaches_half_of_simulated_goodput_if_faithful() {
    if !possible("live_dcudp_reaches_half_of_simulated_goodput_if_faithful") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), DCUDP);
    let path = path.to_str().unwrap();
    let goodput =
        |summary: &Value| summary["groups"]["flow"]["goodput_bps"].as_f64().unwrap() / 1e6;
    let simulated = goodput(&run(&["run", "--json", path]).json());
    // Hosts that a busy machine wakes late look like queueing to the rate control, also where the switch
    // is faithful: the best of three runs counts.
    let mut attempts = (0..3).map(|_| {
        let live = run(&["run", "--live", "--json", path]).json();
        let ratio = goodput(&live) / simulated;
        assert!(
            (0.1..1.05).contains(&ratio),
            "{ratio} of {simulated}: {live:#}"
        );
        (ratio, live["emulation"]["faithful"] == true)
    });
    let reached = attempts.any(|(ratio, faithful)| ratio >= 0.5 || !faithful);
    assert!(reached, "less than half of {simulated}, three times");
}

/// Two senders and a receiver; each transport carries the same workload.
const STAR: &str = r#"
    title = "A star, live"
    source = "a test"
    duration = "1s"
    [star]
    rate = "200Mbps"
    delay = "20us"
    queue = { kind = "step", buffer = "300KB", ecn_threshold = "30KB" }
    [star.hosts.client]
    [star.hosts.server]
    count = 2
"#;

fn group(name: &str, transport: &str, workload: &str) -> String {
    format!(
        "[groups.{name}]\nfrom = \"server\"\nto = \"client\"\ntransport = \"{transport}\"\n\
         workload = {workload}\n"
    )
}

#[test]
fn transfers_arrive_at_random_and_each_is_counted() {
    if !possible("transfers_arrive_at_random_and_each_is_counted") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let arrivals = r#"{ kind = "poisson", mean_interval = "10ms", distribution = [["10KB", 0.5], ["50KB", 1.0]] }"#;
    let groups = ["tcp", "quic"].map(|transport| group(transport, transport, arrivals));
    let path = scenario(directory.path(), &[STAR, &groups[0], &groups[1]].concat());
    let summary = run(&["run", "--live", "--json", path.to_str().unwrap()]).json();
    for name in ["tcp", "quic"] {
        let group = &summary["groups"][name];
        let count = |key: &str| group[key].as_u64().unwrap();
        // A hundred are expected; a busy machine may not complete them.
        let (flows, completed) = (count("flows"), count("completed"));
        assert!((1..170).contains(&flows), "{summary:#}");
        assert!((1..=flows).contains(&completed), "{summary:#}");
        let bytes = 10_000 * completed..=50_000 * flows;
        assert!(bytes.contains(&count("delivered_bytes")), "{summary:#}");
    }
}

#[test]
fn all_servers_answer_each_round_of_an_incast() {
    if !possible("all_servers_answer_each_round_of_an_incast") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rounds = r#"{ kind = "incast", response = "20KB", rounds = 20, pause = "1ms" }"#;
    for transport in ["tcp", "quic"] {
        let incast = group("incast", transport, rounds).replace("workload", "flows = 3\nworkload");
        let path = scenario(directory.path(), &[STAR, &incast].concat());
        let summary = run(&["run", "--live", "--json", path.to_str().unwrap()]).json();
        let group = &summary["groups"]["incast"];
        assert_eq!(group["completed"], 20, "{summary:#}");
        let delivered = group["delivered_bytes"].as_u64().unwrap();
        assert!(delivered >= 2 * 3 * 20 * 20_000, "{summary:#}");
    }
}

#[test]
fn wireshark_reads_the_packets_of_a_live_run() {
    if !possible("wireshark_reads_the_packets_of_a_live_run") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // A snap length that keeps whole packets, even with offloads.
    let whole = "[measurements]\nports = \"*\"\nsnap_length = \"65535B\"\n";
    let path = scenario(directory.path(), &[DUMBBELL, whole].concat());
    let packets = directory.path().join("packets.pcapng");
    let (path, packets) = (path.to_str().unwrap(), packets.to_str().unwrap());
    run(&["run", "--live", path, "--pcap", packets]).ok();
    match frames_with_right_checksums(Path::new(packets)) {
        Some(count) => assert!(count > 3_000),
        None => eprintln!("SKIPPED: Wireshark on the packets of a live run: no tshark"),
    }
}

/// Returns the number of TCP segments with data in a capture in which all checksums are correct;
/// `None` without tshark.
fn frames_with_right_checksums(packets: &Path) -> Option<usize> {
    let checks = ["ip", "tcp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    let tshark = |filter: &str| {
        std::process::Command::new("tshark")
            .arg("-r")
            .arg(packets)
            .args(["-o", &checks[0], "-o", &checks[1], "-Y", filter])
            // Each packet appears once for each link on its path, which is not a valid stream.
            .args(["-o", "tcp.desegment_tcp_streams:FALSE"])
            .output()
    };
    let good = tshark("tcp.checksum.status == 1 && tcp.len > 0").ok()?;
    let wrong = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || \
                 frame.len > 1514";
    let wrong = tshark(wrong).unwrap();
    assert!(
        wrong.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&wrong.stdout)
    );
    Some(good.stdout.split(|byte| *byte == b'\n').count())
}

/// Files over a lossy path, with a gateway that recovers the losses. TLS verifies every byte.
const GATEWAY: &str = r#"
    title = "TCon, live"
    source = "a test"
    duration = "6s"
    [hosts.server]
    [hosts.client]
    [switches.gateway]
    [[switches.gateway.tcon]]
    from = "server"
    congestion = "CONGESTION"
    [[links]]
    from = "server"
    to = "gateway"
    rate = "1Gbps"
    delay = "50us"
    [[links]]
    from = "gateway"
    to = "client"
    rate = "50Mbps"
    delay = "1ms"
    queue = { kind = "step", ecn_threshold = "10KB", buffer = "100KB" }
    [groups.files]
    from = "client"
    to = "server"
    flows = 2
    transport = "tls"
    workload = { kind = "request-response", request = "100B", response = "300KB", requests = 4, connection = "fresh" }
    [groups.files.tcp]
    sack = SACK
    ecn = "ECN"                  # DCTCP in the gateway needs a client that offers it
    [[faults]]
    ports = "gateway->client"
    at = "0s"
    kind = "loss"
    probability = 0.02
    [measurements]
    ports = "*"
    snap_length = "65535B"
"#;

#[test]
fn a_gateway_repairs_losses_of_kernel_tcp_without_corruption() {
    if !possible("a_gateway_repairs_losses_of_kernel_tcp_without_corruption") {
        return;
    }
    for (congestion, sack, family) in [
        ("bbr", "true", "ipv4"),
        ("dctcp", "true", "ipv6"),
        ("cubic", "false", "ipv4"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ecn = match congestion {
            "dctcp" => "rfc3168",
            _ => "off",
        };
        let text = GATEWAY
            .replace("CONGESTION", congestion)
            .replace("SACK", sack)
            .replace("ECN", ecn);
        let family = format!("\n[live]\naddress_family = \"{family}\"\n");
        let path = scenario(directory.path(), &[&text, &*family].concat());
        let packets = directory.path().join("packets.pcapng");
        let (path, pcap) = (path.to_str().unwrap(), packets.to_str().unwrap());
        let summary = run(&["run", "--live", "--json", path, "--pcap", pcap]).json();
        assert_eq!(summary["groups"]["files"]["completed"], 8, "{summary:#}");
        let tcon = &summary["tcon"]["gateway"];
        let count = |key: &str| tcon[key].as_u64().unwrap();
        // Both directions of each connection carry data, and one direction has a rule.
        assert_eq!(count("flows"), 8, "{summary:#}");
        assert!(
            count("masked_losses") > 0 && count("lowered_windows") > 0,
            "{summary:#}"
        );
        assert_eq!(count("unkept"), 0, "{summary:#}");
        // A last ACK may arrive after both FINs have ended its flow.
        assert!(count("unknown") <= 8, "{summary:#}");
        if congestion == "dctcp" {
            assert!(count("echoes") > 0, "{summary:#}");
        }
        match frames_with_right_checksums(&packets) {
            Some(count) => assert!(count > 3_000),
            None => eprintln!("SKIPPED: the checksums of rewritten packets: no tshark"),
        }
    }
}

#[test]
fn a_controller_knows_the_sizes_and_deadlines_of_flows() {
    if !possible("a_controller_knows_the_sizes_and_deadlines_of_flows") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let text = r#"
    title = "SED, live"
    source = "a test"
    duration = "3s"
    [star]
    rate = "200Mbps"
    delay = "100us"
    queue = { kind = "drop-tail", buffer = "300KB" }
    [star.hosts.sender]
    count = 3
    [star.hosts.receiver]
    [sed]
    rtt = "400us"
    retransmit = true
    [groups.urgent]
    from = "sender1"
    to = "receiver"
    deadline = "900ms"
    start_within = "10ms"
    workload = { kind = "transfer", size = "2MB", rounds = 2, interval = "1s" }
    tcp = { ack_every = 1, sack = false }
    [groups.once]
    from = "sender2"
    to = "receiver"
    deadline = "2s"
    workload = { kind = "transfer", size = "5MB" }
    tcp = { ack_every = 1, sack = false }
    [groups.endless]
    from = "sender3"
    to = "receiver"
    workload = "bulk"
    tcp = { ack_every = 1, sack = false }
    "#;
    let path = scenario(directory.path(), text);
    let summary = run(&["run", "--live", "--json", path.to_str().unwrap()]).json();
    let groups = &summary["groups"];
    assert_eq!(groups["urgent"]["completed"], 2, "{summary:#}");
    assert_eq!(groups["urgent"]["flows"], 2, "{summary:#}");
    assert_eq!(groups["once"]["completed"], 1, "{summary:#}");
    assert!(groups["once"]["deadlines_missed"].is_u64(), "{summary:#}");
    assert_eq!(summary["deadlines"]["transfers"], 3, "{summary:#}");
    let endless = groups["endless"]["delivered_bytes"].as_u64().unwrap();
    assert!(endless > 1_000_000, "{summary:#}");
}

#[test]
fn an_interrupted_run_reports_and_removes_its_hosts() {
    if !possible("an_interrupted_run_reports_and_removes_its_hosts") {
        return;
    }
    for (which, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let directory = tempfile::tempdir().unwrap();
        let path = scenario(directory.path(), DUMBBELL);
        let child = start(&path, &["--set", "duration=600s"]);
        let director = child.id();
        let processes = hosts(director);
        assert_eq!(processes.len(), 2);
        sleep(Duration::from_millis(500));
        signal(&child, which);
        let said = command_output(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(code), "{}", said.stderr);
        let summary: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(summary["interrupted"], true);
        wait_until_ended(&processes);
        assert!(!Path::new(&format!("/run/weir/lab/{director}")).exists());
    }
}

#[test]
fn a_killed_run_leaves_only_a_directory_that_can_be_cleaned() {
    if !possible("a_killed_run_leaves_only_a_directory_that_can_be_cleaned") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), DUMBBELL);
    let mut child = start(&path, &["--set", "duration=600s"]);
    let director = child.id();
    let processes = hosts(director);
    let listed = run(&["lab", "list"]);
    assert!(listed.ok().stdout.contains(&director.to_string()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_ended(&processes);
    assert!(Path::new(&format!("/run/weir/lab/{director}")).exists());
    let listed = run(&["lab", "list"]);
    assert!(listed.ok().stdout.contains("killed"), "{}", listed.stdout);
    run(&["lab", "clean"]).ok();
    assert!(!Path::new(&format!("/run/weir/lab/{director}")).exists());
}

#[test]
fn concurrent_runs_are_isolated() {
    if !possible("concurrent_runs_are_isolated") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), &DUMBBELL.replace("100Mbps", "20Mbps"));
    let children = [start(&path, &[]), start(&path, &[])];
    for child in children {
        let summary = command_output(child.wait_with_output().unwrap()).json();
        let goodput = summary["groups"]["bulk"]["goodput_bps"].as_f64().unwrap();
        assert!((5e6..25e6).contains(&goodput), "{summary:#}");
    }
}

#[test]
fn a_host_that_dies_ends_the_run() {
    if !possible("a_host_that_dies_ends_the_run") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), DUMBBELL);
    // During set-up, and later.
    for patience in [0, 700] {
        let child = start(&path, &["--set", "duration=600s"]);
        let processes = hosts(child.id());
        sleep(Duration::from_millis(patience));
        let victim = Pid::from_raw(processes[0]).unwrap();
        kill_process(victim, Signal::KILL).unwrap();
        let said = command_output(child.wait_with_output().unwrap());
        said.failed(1, &["host `", "ended before its time"]);
        wait_until_ended(&processes);
    }
}

#[test]
fn obstacles_are_reported_before_the_run_starts() {
    let host = run(&["lab-host"]);
    host.failed(1, &["weir run --live"]);
    if !possible("obstacles_are_reported_before_the_run_starts") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), DUMBBELL);
    let path = path.to_str().unwrap();
    let live = |more: &[&str]| run(&[&["run", "--live", path], more].concat());
    live(&["--pcap", "/nowhere/x.pcapng"]).failed(1, &["/nowhere/x.pcapng"]);
    live(&["--set", "groups.bulk.congestion=swift"]).failed(1, &["swift", "quic"]);
    live(&["--set", "dumbbell.senders.sender.count=15000"]).failed(1, &["too large"]);
}
