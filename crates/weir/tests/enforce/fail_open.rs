//! Fail-open: a cable whose enforcer is killed, stopped or replaced in the middle of transfers.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::datagrams::Datagrams;
use crate::exclusive::run_to_end;
use crate::files::Files;
use crate::in_line::{CLIENT, DOWNLOADS, Download, SERVER, flow_of, is_promiscuous};
use crate::namespace::{Namespace, can_fail_open, join};
use crate::running::{Running, wait};
use crate::support::{CommandOutput, command_output};

pub(crate) const INLINE: [&str; 3] = ["--inline", "lan0", "wan0"];
/// The address of all hosts of the network.
const ALL: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 255);
/// Files, and their rate each in bytes per second.
const FILES: (u64, u64) = (20, 1_000_000);

/// A server, the enforcer's machine and a client.
pub(crate) fn row() -> [Namespace; 3] {
    let [server, middle, client] = [(); 3].map(|()| Namespace::new());
    join((&server, "eth0"), (&middle, "lan0"));
    join((&middle, "wan0"), (&client, "eth0"));
    server.ip(&format!("address add {SERVER}/24 dev eth0"));
    client.ip(&format!("address add {CLIENT}/24 dev eth0"));
    [server, middle, client]
}

fn bypass(running: &Running) -> Value {
    running.status()["totals"]["in_line"]["bypass"].clone()
}

fn times(running: &Running) -> u64 {
    bypass(running)["times"].as_u64().unwrap()
}

/// Returns the number of frames that have passed through the enforcer.
fn forwarded(running: &Running) -> u64 {
    running.status()["totals"]["in_line"]["frames"]
        .as_u64()
        .unwrap()
}

/// Waits until the enforcer forwards the frames that come.
fn wait_until_it_forwards(running: &Running) {
    wait("the bypass is over", || {
        bypass(running)["is_active"] == false
    });
    let before = forwarded(running);
    wait("the enforcer forwards", || forwarded(running) > before);
}

fn clean(middle: &Namespace) -> CommandOutput {
    let mut command = middle.command(env!("CARGO_BIN_EXE_weir"));
    command_output(command.args(["enforce", "clean"]).output().unwrap())
}

/// Checks that a message gets through, by a new connection.
fn assert_connected(server: &Namespace, client: &Namespace, port: u16) {
    let listener = server.run(move || TcpListener::bind((SERVER, port)).unwrap());
    let address = (SERVER, port).into();
    client
        .run(move || TcpStream::connect_timeout(&address, Duration::from_secs(20)))
        .unwrap();
    listener.accept().unwrap();
}

/// Checks that a new connection gets no answer.
fn assert_cut(client: &Namespace, port: u16) {
    let address = (SERVER, port).into();
    let result = client.run(move || TcpStream::connect_timeout(&address, Duration::from_secs(1)));
    assert!(result.is_err(), "frames pass");
}

#[test]
fn transfers_survive_a_kill_a_takeover_and_a_stop() {
    if !can_fail_open("transfers_survive_a_kill_a_takeover_and_a_stop") {
        return;
    }
    let [server, middle, client] = row();
    let policy = format!("{DOWNLOADS}\"cubic\"\n");
    let running = Running::start(&middle, &policy, &INLINE);
    let files = Files::start([&server, &client], (CLIENT, 8001), FILES);
    files.wait_for_more(300_000);
    eprintln!("longest gap as usual: {:?}", files.take_longest_gap());

    running.signal(Signal::KILL);
    let (status, said) = running.end();
    assert!(
        !status.success() && said.contains("fail-open is armed"),
        "{said}"
    );
    // Nobody is there to forward these.
    files.wait_for_more(500_000);
    eprintln!("longest gap after kill -9: {:?}", files.take_longest_gap());

    let running = Running::start(&middle, &policy, &INLINE);
    wait_until_it_forwards(&running);
    files.wait_for_more(500_000);
    eprintln!(
        "longest gap at the takeover: {:?}",
        files.take_longest_gap()
    );
    let counted = bypass(&running);
    assert!(counted["times"].as_u64() >= Some(1), "{counted}");
    // At least one frame for each 64 KB of these files.
    assert!(counted["frames"].as_u64() > Some(150), "{counted}");
    assert!(forwarded(&running) > 0);
    let text = running.status_text();
    assert!(text.contains("fails open; bypassed"), "{text}");

    let before = times(&running);
    running.signal(Signal::STOP);
    files.wait_for_more(500_000);
    eprintln!("longest gap at SIGSTOP: {:?}", files.take_longest_gap());
    running.signal(Signal::CONT);
    wait_until_it_forwards(&running);
    assert!(times(&running) > before);
    files.wait_for_more(300_000);
    eprintln!("longest gap at SIGCONT: {:?}", files.take_longest_gap());

    // A live enforcer keeps what it needs.
    let kept = clean(&middle);
    let lines: Vec<_> = kept.ok().stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", kept.stdout);
    assert!(
        lines
            .iter()
            .all(|line| line.contains("controlled by process")),
        "{}",
        kept.stdout
    );
    files.finish();
    running.signal(Signal::TERM);
    let (status, said) = running.end();
    assert!(status.success(), "{status}: {said}");
    for words in ["since an earlier process died", "nothing passes any more"] {
        assert!(said.contains(words), "no {words:?} in: {said}");
    }
    assert_nothing_is_left(&middle, &client);
}

fn assert_nothing_is_left(middle: &Namespace, client: &Namespace) {
    assert!(clean(middle).ok().stdout.contains("nothing to remove"));
    for name in ["lan0", "wan0"] {
        assert!(!is_promiscuous(middle, name), "{name}");
    }
    let mut command = middle.command("tc");
    let disciplines = command.args(["qdisc", "show"]).output().unwrap();
    let text = String::from_utf8(disciplines.stdout).unwrap();
    assert!(!text.contains("clsact"), "{text}");
    assert_cut(client, 8100);
}

#[test]
fn what_a_killed_enforcer_leaves_can_be_removed() {
    if !can_fail_open("what_a_killed_enforcer_leaves_can_be_removed") {
        return;
    }
    let [server, middle, client] = row();
    let running = Running::start(&middle, crate::POLICY, &INLINE);
    running.signal(Signal::KILL);
    running.end();
    assert_connected(&server, &client, 8002);
    assert!(
        is_promiscuous(&middle, "lan0"),
        "frames for others have to arrive"
    );
    let said = clean(&middle);
    for name in ["lan0: ", "wan0: "] {
        assert!(said.ok().stdout.contains(name), "{}", said.stdout);
    }
    assert_nothing_is_left(&middle, &client);
    // One that is to fail closed removes the same.
    Running::start(&middle, crate::POLICY, &INLINE).signal(Signal::KILL);
    let closed = [&INLINE[..], &["--fail-closed"]].concat();
    let running = Running::start(&middle, crate::POLICY, &closed);
    assert_eq!(bypass(&running), Value::Null);
    assert!(running.status_text().contains("fails closed"));
    assert_connected(&server, &client, 8003);
    running.signal(Signal::KILL);
    running.end();
    assert_nothing_is_left(&middle, &client);
}

#[test]
fn renamed_interfaces_are_taken_over_and_new_ones_are_armed() {
    if !can_fail_open("renamed_interfaces_are_taken_over_and_new_ones_are_armed") {
        return;
    }
    let [server, middle, client] = row();
    // An operator's own setting, which has to stay.
    middle.ip("link set lan0 promisc on");
    let kill = |running: Running| {
        running.signal(Signal::KILL);
        running.end().1
    };
    kill(Running::start(&middle, crate::POLICY, &INLINE));
    middle.ip("link set lan0 down");
    middle.ip("link set lan0 name inside");
    middle.ip("link set inside up");
    assert_connected(&server, &client, 8002);
    let inline = ["--inline", "inside", "wan0"];
    let said = kill(Running::start(&middle, crate::POLICY, &inline));
    assert!(said.contains("since an earlier process died"), "{said}");
    // A new interface of the same name has no program; the other end's leads nowhere.
    client.ip("link delete eth0");
    join((&middle, "wan0"), (&client, "eth0"));
    client.ip(&format!("address add {CLIENT}/24 dev eth0"));
    assert_cut(&client, 8003);
    let said = kill(Running::start(&middle, crate::POLICY, &inline));
    assert!(!said.contains("since an earlier process died"), "{said}");
    assert_connected(&server, &client, 8004);
    assert!(clean(&middle).ok().stdout.contains("inside: "));
    assert!(is_promiscuous(&middle, "inside") && !is_promiscuous(&middle, "wan0"));
}

#[test]
fn no_frame_is_doubled() {
    if !can_fail_open("no_frame_is_doubled") {
        return;
    }
    let [server, middle, client] = row();
    let mut running = Running::start(&middle, crate::POLICY, &INLINE);
    // Those to all hosts pass through the process, the others by the fast path.
    let datagrams = Datagrams::start([&server, &client], (ALL, 8005));
    let fast = Datagrams::start([&server, &client], (CLIENT, 8006));
    wait("datagrams pass", || datagrams.pass() && fast.pass());
    for pause in [120, 150, 500].map(Duration::from_millis) {
        running.signal(Signal::STOP);
        std::thread::sleep(pause);
        running.signal(Signal::CONT);
        wait_until_it_forwards(&running);
    }
    for _ in 0..2 {
        running.signal(Signal::KILL);
        running.end();
        running = Running::start(&middle, crate::POLICY, &INLINE);
        wait_until_it_forwards(&running);
    }
    let (fate, fast) = (datagrams.end(), fast.end());
    let in_line = running.status()["totals"]["in_line"].clone();
    eprintln!("{fate:?}, {fast:?}, {in_line}");
    assert_eq!((fate.doubled, fast.doubled), (0, 0), "{fate:?} {fast:?}");
    assert!(fate.lost < fate.sent, "{fate:?}");
    // Once for each pause and each kill.
    assert!(in_line["bypass"]["times"].as_u64() >= Some(5), "{in_line}");
}

#[test]
fn an_enforcer_at_an_interface_is_refused_beside_a_bypass() {
    if !can_fail_open("an_enforcer_at_an_interface_is_refused_beside_a_bypass") {
        return;
    }
    let [_server, middle, _client] = row();
    let running = Running::start(&middle, crate::POLICY, &INLINE);
    running.signal(Signal::KILL);
    running.end();
    let refused = run_to_end(&middle, &["-i", "lan0"]);
    refused.failed(1, &["`lan0`", "`weir enforce clean`"]);
    clean(&middle).ok();
    let running = Running::start(&middle, crate::POLICY, &["-i", "lan0"]);
    assert!(
        running.first.contains("1 rules on lan0"),
        "{}",
        running.first
    );
}

#[test]
fn flows_are_controlled_again_after_a_stop() {
    if !can_fail_open("flows_are_controlled_again_after_a_stop") {
        return;
    }
    let [server, middle, client] = row();
    let policy = format!("{DOWNLOADS}\"cubic\"\n");
    let running = Running::start(&middle, &policy, &INLINE);
    let download = Download::between([&server, &client], 8001);
    download.get(500_000, 500_000);
    let before = flow_of(&running.status(), 8001)["delivered"]
        .as_u64()
        .unwrap();
    running.signal(Signal::STOP);
    download.get(5_000_000, 5_500_000);
    running.signal(Signal::CONT);
    let mut received = 5_500_000;
    wait("it is controlled again", || {
        received += 500_000;
        download.get(500_000, received);
        let status = running.status();
        assert_eq!(status["totals"]["controlled"], 1, "{status}");
        flow_of(&status, 8001)["delivered"].as_u64() >= Some(before + 1_000_000)
    });
    assert!(times(&running) >= 1);
    download.end();
    // Its end is seen.
    wait("it is forgotten", || {
        running.status()["totals"]["controlled"] == 0
    });
}
