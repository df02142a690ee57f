//! `weir perf`, server and client as processes.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{PerfServer, command_output, run};

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

#[test]
fn every_transport_moves_every_byte_both_ways() {
    let server = PerfServer::start(&[]);
    for transport in ["tcp", "tcp-tls", "dcquic", "dcudp"] {
        for reverse in [false, true] {
            let mut client = server.client(&["--transport", transport, "--bytes", "1MB", "--json"]);
            if ["tcp-tls", "dcquic"].contains(&transport) {
                client.args(["--pin", &server.fingerprint]);
            }
            if reverse {
                client.arg("--reverse");
            }
            let json = command_output(client.output().unwrap()).json();
            let end = &json["end"];
            for sum in ["sum_sent", "sum_received"] {
                assert_eq!(end[sum]["bytes"], 1_000_000, "{transport} {reverse}");
                assert!(end[sum]["bits_per_second"].as_f64().unwrap() > 0.0);
            }
            assert_iperf3_format(&json, reverse, transport);
        }
    }
}

fn assert_iperf3_format(json: &Value, reverse: bool, transport: &str) {
    for pointer in [
        "/start/connected/0/local_port",
        "/start/version",
        "/start/timestamp/timesecs",
        "/start/timestamp/time",
        "/start/connecting_to/host",
        "/start/test_start/protocol",
        "/start/test_start/num_streams",
        "/start/test_start/blksize",
        "/start/test_start/reverse",
        "/intervals/0/streams/0/socket",
        "/intervals/0/streams/0/bytes",
        "/intervals/0/sum/bits_per_second",
        "/intervals/0/sum/omitted",
        "/intervals/0/streams/0/omitted",
        "/end/streams/0/sender/bytes",
        "/end/streams/0/receiver/bytes",
        "/end/sum_sent/seconds",
        "/end/sum_sent/retransmits",
        "/end/cpu_utilization_percent/host_total",
        "/end/cpu_utilization_percent/remote_total",
        "/end/cpu_seconds_per_gb/total",
        "/end/congestion",
    ] {
        assert!(json.pointer(pointer).is_some(), "{pointer} in {json}");
    }
    // Only a sender has measurements of its path.
    let is_dcudp = transport == "dcudp";
    let window = if is_dcudp { "pacing_rate" } else { "snd_cwnd" };
    for pointer in ["retransmits", window, "rtt"] {
        let stream = &json["intervals"][0]["streams"][0];
        assert_eq!(
            stream.get(pointer).is_some(),
            !reverse,
            "{pointer} in {stream}"
        );
    }
    assert!(json["end"]["streams"][0]["sender"]["mean_rtt"].is_u64());
    let is_udp = transport.starts_with("dc");
    for field in ["packets", "lost_packets", "lost_percent"] {
        assert_eq!(
            json["end"]["sum"].get(field).is_some(),
            is_udp,
            "{field} in {json}"
        );
    }
    assert_eq!(json["end"]["sum"].get("jitter_ms").is_some(), is_dcudp);
}

#[test]
fn the_default_output_is_a_table() {
    let server = PerfServer::start(&[]);
    let arguments = [
        "--transport",
        "tcp",
        "--time",
        "300ms",
        "--interval",
        "100ms",
        "-P",
        "2",
    ];
    let said = command_output(server.client(&arguments).output().unwrap());
    let text = &said.ok().stdout;
    for word in [
        "connected to 127.0.0.1",
        "[SUM]",
        "bit/s",
        "sender",
        "receiver",
        "CPU seconds per GB",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(text.matches("[SUM]").count() >= 4, "{text}");
}

#[test]
fn a_one_off_server_ends_after_its_test_and_reports_it() {
    let mut server = PerfServer::start(&["--one-off"]);
    let client = server
        .client(&["--transport", "tcp", "--bytes", "1MB"])
        .output()
        .unwrap();
    command_output(client).ok();
    let mut report = String::new();
    server
        .child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut report)
        .unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["end"]["sum_received"]["bytes"], 1_000_000);
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_terminated_server_refuses_further_tests_and_ends_after_the_running_one() {
    let mut idle = PerfServer::start(&[]);
    terminate(&idle.child);
    assert!(idle.child.wait().unwrap().success());

    let mut server = PerfServer::start(&[]);
    let long = ["--transport", "tcp", "--time", "60s", "--interval", "50ms"];
    let mut running = server.client(&long).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    running
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    terminate(&server.child);
    let short = ["--transport", "tcp", "--bytes", "1MB"];
    let refused = loop {
        let refused = command_output(server.client(&short).output().unwrap()).stderr;
        // The signal may still be on its way.
        if !refused.contains("another test") {
            break refused;
        }
    };
    assert!(refused.contains("shuts down"), "{refused}");
    assert_eq!(server.child.try_wait().unwrap(), None);
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_policy_selects_the_dcquic_congestion_control() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    // The server's policy: its data goes to 127.0.0.1, so the first rule does not match.
    write(
        "[[rules]]\nto = \"192.0.2.0/24\"\ncongestion = \"swift\"\n\
         [[rules]]\nto = \"127.0.0.0/8\"\ncongestion = \"newreno\"\n",
    );
    let server = PerfServer::start(&["--policy", path]);
    let test = ["--transport", "dcquic", "--bytes", "100KB", "--json"];
    let congestion = |more: &[&str]| {
        let mut client = server.client(&[&test[..], more].concat());
        client.args(["--pin", &server.fingerprint]);
        command_output(client.output().unwrap()).json()["end"]["congestion"].clone()
    };
    assert_eq!(congestion(&["--reverse"]), "newreno");
    assert_eq!(
        congestion(&["--reverse", "--congestion", "cubic"]),
        "newreno"
    );
    // The client's policy, which the server's does not affect.
    write("[[rules]]\nfrom_port = \"1-65535\"\ncongestion = { name = \"bbr\" }\n");
    assert_eq!(congestion(&["--policy", path]), "bbr");
    write("[[rules]]\npass = true\n");
    let own = congestion(&[]);
    assert_eq!(congestion(&["--policy", path]), own);
    write("[[rules]]\nto = 5\n");
    let refused = |more: &[&str], code, words: &[&str]| {
        let client = server.client(more).output().unwrap();
        command_output(client).failed(code, words);
    };
    let pin = ["--pin", &server.fingerprint, "--policy", path];
    refused(&pin, 1, &["policy.toml:2: rules.0.to"]);
    refused(
        &["--transport", "tcp", "--policy", path],
        2,
        &["--policy", "dcquic"],
    );
    refused(
        &["--congestion", "cubic", "--policy", path],
        2,
        &["--policy"],
    );
}

#[test]
fn a_wrong_pin_is_a_clear_error() {
    let server = PerfServer::start(&[]);
    let wrong = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for transport in ["tcp-tls", "dcquic"] {
        let client = server
            .client(&["--transport", transport, "--pin", wrong])
            .output()
            .unwrap();
        command_output(client).failed(1, &["another certificate than the pinned one"]);
    }
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = run(&["perf", "server", "--port", &port]);
    said.failed(1, &[&format!("127.0.0.1:{port} is in use"), "another port"]);
}

#[test]
fn the_client_reports_that_the_udp_port_is_in_use() {
    let server = PerfServer::start(&[]);
    let _taken = UdpSocket::bind(server.address).unwrap();
    let client = server
        .client(&["--pin", &server.fingerprint])
        .output()
        .unwrap();
    command_output(client).failed(1, &["refuses", "is in use"]);
}

#[test]
fn a_missing_server_is_reported_at_once() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let port = unused.port().to_string();
    let client = [
        "perf",
        "client",
        "127.0.0.1",
        "--transport",
        "tcp",
        "--port",
        &port,
    ];
    run(&client).failed(1, &["127.0.0.1", &port, "weir perf server"]);
    let unknown = [
        "perf",
        "client",
        "no-such-host.invalid",
        "--transport",
        "tcp",
    ];
    run(&unknown).failed(1, &["cannot find `no-such-host.invalid`"]);
}

#[test]
fn a_silent_or_invalid_server_is_an_error() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let client = [
        "perf",
        "client",
        "127.0.0.1",
        "--transport",
        "tcp",
        "--port",
        &port,
    ];
    run(&[&client[..], &["--timeout", "200ms"]].concat())
        .failed(1, &["longer than 200ms", "--timeout"]);

    let talking = std::thread::spawn(move || {
        // An earlier connection is in the backlog.
        let mut stream = silent.incoming().nth(1).unwrap().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        // Wait until the client has given up.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    run(&client).failed(1, &["do not speak the same version"]);
    talking.join().unwrap();
}

#[test]
fn a_server_killed_during_a_test_ends_the_client_with_a_message() {
    for transport in ["dcquic", "tcp-tls"] {
        let mut server = PerfServer::start(&[]);
        let mut client = server.client(&["--transport", transport, "--time", "60"]);
        client.args(["--pin", &server.fingerprint]);
        let mut client = client
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        client
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut first)
            .unwrap();
        server.child.kill().unwrap();
        command_output(client.wait_with_output().unwrap()).failed(1, &["closed the connection"]);
    }
}

#[test]
fn ctrl_c_ends_a_client_but_not_its_server() {
    let server = PerfServer::start(&[]);
    let mut client = server
        .client(&["--transport", "tcp", "--time", "60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    client
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    interrupt(&client);
    assert_eq!(client.wait().unwrap().code(), Some(130));
    loop {
        let again = server
            .client(&["--transport", "tcp", "--bytes", "1MB"])
            .output()
            .unwrap();
        let again = command_output(again);
        // Wait until the server has noticed.
        if !again.stderr.contains("another test is running") {
            again.ok();
            break;
        }
    }
    interrupt(&server.child);
}

#[test]
fn a_closed_output_pipe_ends_the_client_without_error() {
    let server = PerfServer::start(&[]);
    let mut client = server
        .client(&["--transport", "tcp", "--time", "60", "--interval", "50ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = client.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1]).unwrap();
    drop(stdout);
    let said = command_output(client.wait_with_output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
}

/// Creates a file with a key that repeats this digit.
fn key_file(digit: char) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", digit.to_string().repeat(64)).unwrap();
    file
}

#[test]
fn dcudp_in_a_data_center_reports_its_mode_and_keeps_its_rate() {
    let server = PerfServer::start(&[]);
    let arguments = [
        "--transport",
        "dcudp",
        "--profile",
        "data-center",
        "--rate",
        "400Mbps",
        "--time",
        "500ms",
        "--json",
    ];
    let json = command_output(server.client(&arguments).output().unwrap()).json();
    assert_eq!(json["start"]["test_start"]["rate"], 400_000_000);
    assert_eq!(json["start"]["test_start"]["keyed"], false);
    let end = &json["end"];
    assert_eq!(end["sum_sent"]["mode_switches"], 0);
    assert_eq!(end["sum_sent"]["ce_marked"], 0);
    assert_eq!(end["congestion"], "dcudp");
    assert_eq!(json["intervals"][0]["streams"][0]["mode"], "udp");
    // Half a second of data, including the buffers at the end.
    let bytes = end["sum_received"]["bytes"].as_u64().unwrap();
    assert!((1_000_000..40_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn dcudp_finds_its_rate_unless_it_is_told() {
    let server = PerfServer::start(&[]);
    let arguments = ["--transport", "dcudp", "--time", "300ms", "--json"];
    let json = command_output(server.client(&arguments).output().unwrap()).json();
    assert_eq!(json["start"]["test_start"]["profile"], "shared");
    assert_eq!(json["start"]["test_start"].get("rate"), None);
    assert_eq!(json["end"]["congestion"], "cubic");
    assert_eq!(json["intervals"][0]["streams"][0]["mode"], "congestion");
    assert!(json["end"]["sum_received"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_dcudp_server_with_a_key_accepts_only_that_key() {
    let (ours, other) = (key_file('a'), key_file('b'));
    let (ours, other) = (
        ours.path().to_str().unwrap(),
        other.path().to_str().unwrap(),
    );
    let server = PerfServer::start(&["--key-file", ours]);
    let open = PerfServer::start(&[]);
    let test = ["--transport", "dcudp", "--bytes", "1MB", "--json"];
    let client = |server: &PerfServer, more: &[&str]| {
        command_output(server.client(&[&test, more].concat()).output().unwrap())
    };
    let json = client(&server, &["--key-file", ours]).json();
    assert_eq!(json["end"]["sum_received"]["bytes"], 1_000_000);
    assert_eq!(json["start"]["test_start"]["keyed"], true);
    client(&server, &[]).failed(1, &["refuses", "--key-file"]);
    client(&server, &["--key-file", other, "--timeout", "500ms"])
        .failed(1, &["does not answer to this key"]);
    client(&open, &["--key-file", ours]).failed(1, &["refuses", "--key-file"]);
}

#[test]
fn options_of_another_transport_are_named() {
    let key = key_file('a');
    let key = key.path().to_str().unwrap();
    let pin = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for (arguments, word) in [
        (
            &["--transport", "tcp", "--rate", "1Gbps"][..],
            "--rate: tcp",
        ),
        (
            &["--transport", "dcquic", "--pin", pin, "--key-file", key],
            "--key-file: dcquic",
        ),
        (&["--transport", "dcudp", "--pin", pin], "--pin: dcudp"),
        (
            &["--transport", "dcudp", "--rate", "0Gbps"],
            "--rate: it must be above zero",
        ),
        (&["--transport", "dcudp", "--rate", "fast"], "--rate"),
        (
            &["--transport", "dcudp", "--mps", "100"],
            "--mps: it must be 128B to 65507B",
        ),
        (
            &["--transport", "dcudp", "--congestion", "nosuch"],
            "--congestion",
        ),
        (
            &["--transport", "dcudp", "--congestion", "dcudp"],
            "--profile data-center",
        ),
        (
            &["--transport", "dcudp", "--profile", "lan"],
            "shared, data-center",
        ),
        (
            &["--transport", "dcudp", "--congestion-on-loss"],
            "--congestion-on-loss: with the profile `shared`",
        ),
        (
            &["--transport", "tcp", "--profile", "shared"],
            "--profile: tcp",
        ),
        (
            &["--transport", "dcudp", "--key-file", "/no/such/key"],
            "--key-file: cannot read",
        ),
    ] {
        let client = [&["perf", "client", "127.0.0.1"], arguments].concat();
        run(&client).failed(2, &[word]);
    }
}
