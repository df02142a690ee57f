//! `max_rate` of a policy: never more than the rate, with and without sockets of the machine.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::in_line::{CLIENT, SERVER, flow_of};
use crate::namespace::{Namespace, join, possible};
use crate::running::{Running, wait};
use crate::traffic::neighbours;

/// The rate, in bytes per second.
const RATE: u64 = 2_500_000;
const LIMITED: &str = "[[rules]]\nfrom_port = \"8000-8999\"\ncongestion = { name = \"cubic\", max_rate = \"20Mbps\" }\n";
const TIME: Duration = Duration::from_millis(2_500);

/// An address that is reached by a router only.
const DISTANT: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);

/// A connection whose server always has data to send, until it is dropped.
struct Stream {
    into: TcpStream,
    begun: Instant,
}

impl Stream {
    fn open(server: &Namespace, client: &Namespace, port: u16) -> Self {
        let listener = server.run(|| TcpListener::bind((SERVER, port)).unwrap());
        let begun = Instant::now();
        let into = client.run(|| TcpStream::connect((SERVER, port)).unwrap());
        std::thread::spawn(move || {
            let (mut from, _) = listener.accept().unwrap();
            while from.write_all(&[0; 65_536]).is_ok() {}
        });
        Self { into, begun }
    }

    /// Reads for some time; returns the bytes.
    fn read(&mut self, time: Duration) -> u64 {
        let (begun, mut buffer, mut received) = (Instant::now(), vec![0; 65_536], 0);
        while begun.elapsed() < time {
            received += self.into.read(&mut buffer).unwrap() as u64;
        }
        received
    }
}

/// Reads, and checks the rate from the opening of the connection and in the status.
fn assert_limited(running: &Running, stream: &mut Stream, port: u16) {
    let received = stream.read(TIME);
    let time = stream.begun.elapsed().as_secs_f64();
    let flow = flow_of(&running.status(), port);
    let rate = received as f64 / time;
    eprintln!("{rate:.0} of {RATE} bytes/s; {flow}");
    // What a flow may send at once, 120 ms of the rate and a window before the decision, is as much here.
    let most = RATE as f64 * (time * 1.05 + 0.2);
    assert!((received as f64) < most, "{received} bytes in {time} s");
    assert!(rate > RATE as f64 / 4.0, "{received} bytes in {time} s");
    assert_eq!(flow["max_rate"], 8 * RATE, "{flow}");
    let shown = flow["measured_rate"].as_u64().unwrap();
    assert!(shown > 2 * RATE && shown < 10 * RATE, "{flow}");
}

/// Returns the highest rate of TCP's pacing of the connections from a port, from `ss`, in bits per second.
fn pacing_limit(namespace: &Namespace, port: u16) -> Option<String> {
    let mut command = namespace.command("ss");
    let filter = format!("sport = {port}");
    let output = command
        .args(["-tinH", "state", "established", &filter])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    // The rate, and behind a slash its limit if there is one.
    let mut words = text
        .split_whitespace()
        .skip_while(|word| *word != "pacing_rate");
    let (_, limit) = words.nth(1)?.split_once('/')?;
    Some(limit.to_owned())
}

const PACED: Option<&str> = Some("20000000bps");

#[test]
fn sockets_are_paced_at_the_highest_rate_until_the_enforcer_ends() {
    if !possible("sockets_are_paced_at_the_highest_rate_until_the_enforcer_ends") {
        return;
    }
    let [server, client] = neighbours();
    let running = Running::start(&server, LIMITED, &["-i", "eth0"]);
    let mut stream = Stream::open(&server, &client, 8001);
    assert_limited(&running, &mut stream, 8001);
    assert_eq!(pacing_limit(&server, 8001).as_deref(), PACED);
    let mut other = Stream::open(&server, &client, 7001);
    other.read(TIME / 10);
    assert_eq!(pacing_limit(&server, 7001), None, "no rule matches it");
    running.signal(Signal::INT);
    let (status, said) = running.end();
    assert!(status.success(), "{said}");
    assert!(!said.contains("max_rate"), "{said}");
    assert_eq!(pacing_limit(&server, 8001), None);

    // A killed enforcer leaves the sockets paced; the next one gives them their own rates back.
    let running = Running::start(&server, LIMITED, &["-i", "eth0"]);
    let mut stream = Stream::open(&server, &client, 8002);
    stream.read(TIME / 5);
    assert_eq!(pacing_limit(&server, 8002).as_deref(), PACED);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(pacing_limit(&server, 8002).as_deref(), PACED);
    let running = Running::start(&server, LIMITED, &["-i", "eth0"]);
    wait("its rate is its own", || {
        pacing_limit(&server, 8002).is_none()
    });
    stream.read(TIME / 10);
    assert_eq!(pacing_limit(&server, 8002), None);
    drop(running);
}

#[test]
fn sockets_of_another_namespace_with_the_same_addresses_are_left_alone() {
    if !possible("sockets_of_another_namespace_with_the_same_addresses_are_left_alone") {
        return;
    }
    let pairs = [neighbours(), neighbours()];
    for [_, client] in &pairs {
        // All connections come from this port.
        let mut shell = client.command("sh");
        let words = "echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range";
        assert!(shell.args(["-c", words]).status().unwrap().success());
    }
    let [[server, client], [other, its_client]] = &pairs;
    let running = Running::start(server, LIMITED, &["-i", "eth0"]);
    let mut streams = [
        Stream::open(server, client, 8001),
        Stream::open(other, its_client, 8001),
    ];
    let addresses = streams
        .each_ref()
        .map(|stream| stream.into.local_addr().unwrap());
    assert_eq!(addresses[0], addresses[1]);
    for stream in &mut streams {
        stream.read(TIME / 5);
    }
    assert_eq!(pacing_limit(server, 8001).as_deref(), PACED);
    assert_eq!(pacing_limit(other, 8001), None);
    drop(running);
}

#[test]
fn forwarded_flows_keep_to_the_highest_rate() {
    if !possible("forwarded_flows_keep_to_the_highest_rate") {
        return;
    }
    let [server, router, client] = [(); 3].map(|()| Namespace::new());
    join((&server, "eth0"), (&router, "lan0"));
    join((&router, "wan0"), (&client, "eth0"));
    server.ip(&format!("address add {SERVER}/24 dev eth0"));
    let [a, b, c, _] = SERVER.octets();
    let gateway = Ipv4Addr::new(a, b, c, 254);
    router.ip(&format!("address add {gateway}/24 dev lan0"));
    router.ip("address add 10.98.0.254/24 dev wan0");
    client.ip(&format!("address add {DISTANT}/24 dev eth0"));
    server.ip(&format!("route add default via {gateway}"));
    client.ip("route add default via 10.98.0.254");
    let mut shell = router.command("sh");
    let words = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    assert!(shell.args(["-c", words]).status().unwrap().success());
    let running = Running::start(&router, LIMITED, &["-i", "wan0"]);
    let mut stream = Stream::open(&server, &client, 8001);
    assert_limited(&running, &mut stream, 8001);
    assert_eq!(pacing_limit(&server, 8001), None, "another namespace's");
}

#[test]
fn flows_in_line_keep_to_the_highest_rate() {
    if !possible("flows_in_line_keep_to_the_highest_rate") {
        return;
    }
    let [server, middle, client] = [(); 3].map(|()| Namespace::new());
    join((&server, "eth0"), (&middle, "lan0"));
    join((&middle, "wan0"), (&client, "eth0"));
    server.ip(&format!("address add {SERVER}/24 dev eth0"));
    client.ip(&format!("address add {CLIENT}/24 dev eth0"));
    let running = Running::start(&middle, LIMITED, &["--inline", "lan0", "wan0"]);
    let mut stream = Stream::open(&server, &client, 8001);
    assert_limited(&running, &mut stream, 8001);
}
