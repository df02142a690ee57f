//! Slowdowns: five transfers whose times on the empty network are computed by hand, and what is unfinished.

use weir_results::{Observation, OutputError, Ratio, Recorder};
use weir_scenario::shipped;
use weir_units::{Duration, Time};

use crate::observe::{record, run};

/// A path of three links: a byte takes 1 ns on the first, 8 ns on the second and 1 ns on the third; the propagation
/// delays are 3, 5 and 2 us. Segments carry 1460 bytes, and take 1538 on a link; nothing else is in the network, and
/// the window covers every transfer.
const PATH: &str = r#"
title = "Five transfers, one after the other"
source = "a test"
duration = "50ms"
host_jitter = "0s"

[hosts.a]
[hosts.b]
[switches.s]
[switches.t]
[[links]]
from = "a"
to = "s"
rate = "8Gbps"
delay = "3us"
[[links]]
from = "s"
to = "t"
rate = "1Gbps"
delay = "5us"
[[links]]
from = "t"
to = "b"
rate = "8Gbps"
delay = "2us"
"#;

fn group(name: &str, size: &str, start: &str) -> String {
    format!(
        "[groups.{name}]\nfrom = \"a\"\nto = \"b\"\nstart = \"{start}\"\n\
         congestion = {{ name = \"newreno\", initial_window = 100 }}\n\
         tcp = {{ handshake = false, timestamps = false }}\n\
         workload = {{ kind = \"transfer\", size = \"{size}\" }}\n"
    )
}

/// The ideal and the actual time of each flow, in the order of their ends.
#[derive(Default)]
struct Times(Vec<(String, Option<Duration>, Option<Duration>)>);

impl Recorder for Times {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        if let Observation::Flow(flow) = observation {
            let took = flow.end.map(|end: Time| end.since(flow.start));
            self.0.push((flow.group.to_owned(), flow.ideal, took));
        }
        Ok(())
    }
}

#[test]
fn five_transfers_on_the_empty_network_take_their_ideal_time() {
    let transfers = [
        // One packet of 79 bytes on each link: 79 + 8 · 79 + 79 ns, and 10 us.
        ("one", "1B", 79 + 632 + 79 + 10_000),
        // One full packet: 1538 + 8 · 1538 + 1538.
        ("full", "1460B", 1_538 + 12_304 + 1_538 + 10_000),
        // A full packet and one of 79 bytes, which waits for the full one on the last two links and ends last:
        // the full one has left the third link after 15,380 ns.
        ("more", "1461B", 15_380 + 79 + 10_000),
        // Ten full packets, one behind the other on the slow link.
        ("ten", "14600B", 1_538 + 10 * 12_304 + 1_538 + 10_000),
        // 68 full packets and one of 799 bytes, which has left the slow link after the last full one has left the
        // third.
        (
            "many",
            "100001B",
            1_538 + 68 * 12_304 + 8 * 799 + 799 + 10_000,
        ),
    ];
    let mut text = PATH.to_owned();
    for (index, (name, size, _)) in transfers.iter().enumerate() {
        text += &group(name, size, &format!("{}ms", 5 * index));
    }
    let mut times = Times::default();
    let summary = record(&text, &[], &mut times);
    for (name, _, nanos) in transfers {
        let by_hand = Duration::from_nanos(nanos);
        let (_, ideal, took) = times.0.iter().find(|(found, ..)| found == name).unwrap();
        assert_eq!(*ideal, Some(by_hand), "{name}");
        assert_eq!(*took, Some(by_hand), "{name}");
        let slowdown = summary.groups[name].slowdown.as_ref().unwrap();
        assert_eq!(slowdown.all.p99, Some(Ratio::ONE), "{name}");
        assert_eq!((slowdown.all.completed, slowdown.all.unfinished), (1, 0));
    }
}

/// The scenario that ships, with five transfers one after the other in place of its workload. On its links 1538 bytes
/// take 1231 ns at 10 Gbit/s and 308 ns at 40 Gbit/s, rounded up; 91 bytes, which carry one, 73 ns and 19 ns. Each link
/// has 1 us of propagation delay: there are two in a rack, and four between racks.
#[test]
fn five_transfers_on_the_empty_leaf_spine_take_their_ideal_time() {
    let transfers = [
        ("rack-byte", "a2", "1B", 2 * 73 + 2_000),
        ("byte", "b1", "1B", 2 * 73 + 2 * 19 + 4_000),
        ("rack-packet", "a2", "1448B", 2 * 1_231 + 2_000),
        // Ten full packets leave the last link, which is as slow as the first, one behind the other.
        ("ten", "b1", "14480B", 1_231 + 2 * 308 + 10 * 1_231 + 4_000),
        // 690 full packets, and one of 970 bytes behind them: 776 ns.
        (
            "megabyte",
            "d8",
            "1MB",
            1_231 + 2 * 308 + 690 * 1_231 + 776 + 4_000,
        ),
    ];
    let shipped = shipped::SHIPPED
        .iter()
        .find(|(name, _)| *name == "leaf-spine-web-search");
    let text = shipped.unwrap().1;
    let (head, rest) = text.split_once("[parameters]").unwrap();
    let network = rest.split_once("[hosts.a]").unwrap().1;
    let (network, _) = network.split_once("[groups.web]").unwrap();
    let mut text = format!("host_jitter = \"0s\"\n{head}[hosts.a]{network}");
    for (index, (name, to, size, _)) in transfers.iter().enumerate() {
        let flow = group(name, size, &format!("{}ms", 60 + 5 * index));
        text += &flow
            .replace("\"a\"", "\"a1\"")
            .replace("\"b\"", &format!("\"{to}\""));
    }
    let text = text.replace("initial_window = 100", "initial_window = 1000");
    let text = text.replace("timestamps = false", "timestamps = true");
    let mut times = Times::default();
    record(&text, &[], &mut times);
    for (name, _, _, nanos) in transfers {
        let by_hand = Some(Duration::from_nanos(nanos));
        let (_, ideal, took) = times.0.iter().find(|(found, ..)| found == name).unwrap();
        assert_eq!(*ideal, by_hand, "{name}");
        // A link that sends packets back to back keeps the fractions of nanoseconds that each is rounded up by.
        let took = took.unwrap().as_nanos();
        let least = nanos - nanos / 1_231;
        assert!((least..=nanos).contains(&took), "{name}: {took} of {nanos}");
    }
}

#[test]
fn the_handshake_is_part_of_the_slowdown() {
    let text = format!("{PATH}{}", group("one", "1B", "0s"));
    let summary = run(&text, &["groups.one.tcp.handshake=true".to_owned()]);
    let slowdown = summary.groups["one"].slowdown.as_ref().unwrap();
    // A round trip before the data.
    let slowdown = slowdown.all.mean.unwrap().value();
    assert!((2.9..3.1).contains(&slowdown), "{slowdown}");
}

#[test]
fn unfinished_transfers_are_counted_and_have_no_slowdown() {
    // 10 MB take 80 ms.
    let text = format!("{PATH}{}", group("large", "10MB", "0s"));
    let mut times = Times::default();
    let summary = record(&text, &[], &mut times);
    let large = &summary.groups["large"];
    assert_eq!((large.flows, large.completed, large.unfinished), (1, 0, 1));
    let slowdown = large.slowdown.as_ref().unwrap();
    assert_eq!((slowdown.all.completed, slowdown.all.unfinished), (0, 1));
    assert_eq!(
        (slowdown.all.p50, slowdown.sizes["10MB"].unfinished),
        (None, 1)
    );
    assert!(times.0[0].1.is_some() && times.0[0].2.is_none());
    // So are those that stop before the end of the run.
    let text = text.replace("start =", "stop = \"10ms\"\nstart =");
    assert_eq!(run(&text, &[]).groups["large"].unfinished, 1);
}

#[test]
fn flows_that_stop_before_the_end_count_in_the_fairness() {
    let text = r#"
        title = "Two flows of unequal length"
        source = "a test"
        duration = "200ms"
        warm_up = "20ms"
        [dumbbell]
        rate = "100Mbps"
        queue = { kind = "step", ecn_threshold = "20 packets", buffer = "100KB" }
        [dumbbell.senders.sender]
        count = 2
        rtt = "200us"
        [groups.flows]
        from = "sender"
        to = "receiver"
        congestion = "dctcp"
        workload = "bulk"
        stop = "100ms"
        [groups.late]
        from = "sender1"
        to = "receiver"
        congestion = "dctcp"
        workload = "bulk"
        start = "120ms"
    "#;
    let summary = run(text, &[]);
    let fairness = summary.groups["flows"].fairness.unwrap().value();
    assert!((0.8..=1.0).contains(&fairness), "{fairness}");
    // One flow alone, over its own 80 ms: the whole link.
    assert_eq!(summary.groups["late"].fairness.unwrap().value(), 1.0);
    // All of a group's flows cross the bottleneck, for a half of the measured time.
    let share = summary.groups["late"].link_share.unwrap().value();
    assert!((0.4..0.46).contains(&share), "{share}");
}
