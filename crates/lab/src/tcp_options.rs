//! The TCP options of a scenario: which a kernel socket supports, and which are unsupported. Settings of
//! a whole network namespace belong to the [`plan`](crate::plan).

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_scenario::{Pacing, PartialAckTimer, Recovery, RtoFloor, TcpOptions};
use weir_traffic::tcp::TcpSettings;
use weir_units::{ByteSize, Duration};

/// The range of `TCP_MAXSEG` (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` of the kernel).
const SEGMENTS: std::ops::RangeInclusive<u64> = 88..=32_767;
/// Linux's `TCP_RTO_MIN`, `TCP_RTO_MAX` and `TCP_DELACK_MIN`. A socket's minimum may only be shorter.
pub(crate) const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(120);
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// The maximum of `TCP_DELACK_MAX_US`.
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(200);
/// Linux's `TCP_TIMEOUT_MIN_US`.
const EARLY_TIMER_MARGIN: Duration = Duration::from_millis(2);
/// Linux's initial retransmission time-out (RFC 6298).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The largest buffers of Linux's automatic tuning: `tcp_wmem`, `tcp_rmem`.
const SEND_BUFFER: ByteSize = ByteSize::from_mib(4);
const RECEIVE_BUFFER: ByteSize = ByteSize::from_mib(6);

/// An option that a scenario sets and the kernel does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnsupportedOption {
    /// The key in `[groups.NAME.tcp]`, or the parameter of `congestion`.
    pub(crate) key: &'static str,
    /// The value in the scenario.
    pub(crate) asked: String,
    /// What the kernel does.
    pub(crate) kernel: &'static str,
}

impl fmt::Display for UnsupportedOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, asked, kernel } = self;
        write!(
            f,
            "`{key}` is {asked} in the scenario; the kernel: {kernel}"
        )
    }
}

/// Returns the socket options for these TCP options and this congestion control. The other options
/// belong to the namespace ([`crate::plan::HostPlan::kernel`]) or are [`unsupported`].
pub(crate) fn socket_settings(options: &TcpOptions, congestion: &AlgorithmSpec) -> TcpSettings {
    let changed = |value: Duration, linux: Duration| (value != linux).then_some(value);
    TcpSettings {
        congestion: Some(kernel_name(congestion).to_owned()),
        mss: Some(options.mss).filter(|mss| SEGMENTS.contains(&mss.bytes())),
        nagle: options.nagle,
        fast_open: false,
        send_buffer: options.send_buffer.filter(|size| *size != SEND_BUFFER),
        receive_buffer: options
            .receive_buffer
            .filter(|size| *size != RECEIVE_BUFFER),
        min_rto: changed(options.min_rto, MIN_RTO)
            .filter(|min_rto| *min_rto < MIN_RTO && takes_min_rto(options)),
        max_rto: changed(options.max_rto, MAX_RTO).filter(|_| takes_max_rto(options)),
        delayed_ack_timeout: changed(options.delayed_ack.delayed_ack_timeout, DELAYED_ACK)
            .filter(|_| takes_delayed_ack(options)),
        paced: options.pacing == Pacing::Window,
    }
}

/// Returns the kernel's name of an algorithm.
pub(crate) fn kernel_name(congestion: &AlgorithmSpec) -> &'static str {
    match congestion.name() {
        "newreno" => "reno",
        name => name,
    }
}

/// Returns the options that neither a socket nor a namespace supports.
pub(crate) fn unsupported(options: &TcpOptions) -> Vec<UnsupportedOption> {
    let mut found = Vec::new();
    let mut refuse = |refused: bool, key, asked: &dyn fmt::Display, kernel| {
        if refused {
            let asked = asked.to_string();
            found.push(UnsupportedOption { key, asked, kernel });
        }
    };
    let ack = &options.delayed_ack;
    refuse(
        !SEGMENTS.contains(&options.mss.bytes()),
        "mss",
        &options.mss,
        "88B to 32767B; the interface's MTU decides instead",
    );
    refuse(
        !options.handshake,
        "handshake",
        &options.handshake,
        "connections always begin with a handshake",
    );
    refuse(
        options.recovery == Some(Recovery::Rfc6675),
        "recovery",
        &"rfc6675",
        "RACK-TLP only",
    );
    refuse(
        !options.limited_transmit,
        "limited_transmit",
        &options.limited_transmit,
        "always on",
    );
    refuse(!options.prr, "prr", &options.prr, "always on");
    refuse(
        ![1, 2].contains(&ack.ack_every),
        "ack_every",
        &ack.ack_every,
        "1 or 2 segments, and fewer than 2 while it finds the peer interactive",
    );
    refuse(
        !takes_delayed_ack(options),
        "delayed_ack_timeout",
        &ack.delayed_ack_timeout,
        "1us to 200ms; it keeps its own 40ms to 200ms",
    );
    refuse(
        ack.quick_ack_segments != 16,
        "quick_ack_segments",
        &ack.quick_ack_segments,
        "up to 16, by the receive window",
    );
    refuse(
        !options.push_small_windows,
        "push_small_windows",
        &options.push_small_windows,
        "windows have two segments, but after a time-out, and then ACKs come at once",
    );
    refuse(
        options.initial_rto != INITIAL_RTO,
        "initial_rto",
        &options.initial_rto,
        "1s",
    );
    refuse(
        !takes_min_rto(options),
        "min_rto",
        &options.min_rto,
        "1us to 120s; it keeps its own 200ms",
    );
    refuse(
        options.early_timer_margin != EARLY_TIMER_MARGIN,
        "early_timer_margin",
        &options.early_timer_margin,
        "2ms, in ticks of its clock",
    );
    refuse(
        options.rto_floor != RtoFloor::Linux,
        "rto_floor",
        &"rfc6298",
        "the minimum is of the margin above the smoothed round-trip time",
    );
    refuse(
        options.partial_ack_timer != PartialAckTimer::Each,
        "partial_ack_timer",
        &"first",
        "each partial acknowledgment restarts the timer",
    );
    refuse(
        !takes_max_rto(options),
        "max_rto",
        &options.max_rto,
        "1s to 120s in whole milliseconds; it keeps its own 120s",
    );
    refuse(
        options.send_buffer.is_none(),
        "send_buffer",
        &"unlimited",
        "automatic, up to `net.ipv4.tcp_wmem`",
    );
    refuse(
        options.receive_buffer.is_none(),
        "receive_buffer",
        &"unlimited",
        "automatic, up to `net.ipv4.tcp_rmem`",
    );
    refuse(
        !options.small_queues,
        "small_queues",
        &options.small_queues,
        "always on",
    );
    refuse(
        options.tso_segments != 1,
        "tso_segments",
        &options.tso_segments,
        "the interface decides: see `[live] gso_segments`",
    );
    found
}

/// Whether the kernel takes this minimum RTO.
pub(crate) fn takes_min_rto(options: &TcpOptions) -> bool {
    (Duration::from_micros(1)..=MAX_RTO).contains(&options.min_rto)
}

fn takes_max_rto(options: &TcpOptions) -> bool {
    (Duration::from_secs(1)..=MAX_RTO).contains(&options.max_rto)
        && options.max_rto.as_nanos().is_multiple_of(1_000_000)
}

fn takes_delayed_ack(options: &TcpOptions) -> bool {
    let timeout = options.delayed_ack.delayed_ack_timeout;
    (Duration::from_micros(1)..=LONGEST_DELAYED_ACK).contains(&timeout)
}

#[cfg(test)]
mod tests {
    use weir_scenario::{Scenario, Setting, Transport};

    use super::*;
    use crate::plan::{HostPlan, Plan};

    fn scenario(settings: &[(&str, &str)]) -> Scenario {
        let text = "title = \"t\"\nsource = \"s\"\nduration = \"1s\"\n\
                    [hosts.a]\n[hosts.b]\n[[links]]\nfrom = \"a\"\nto = \"b\"\n\
                    rate = \"1Gbps\"\ndelay = \"1us\"\n\
                    [groups.g]\nfrom = \"a\"\nto = \"b\"\nworkload = \"bulk\"\n";
        let settings: Vec<_> = settings
            .iter()
            .map(|(key, value)| Setting {
                path: format!("groups.g.{key}"),
                value: (*value).to_owned(),
            })
            .collect();
        Scenario::parse("test.toml", text, &settings)
            .unwrap()
            .scenario
    }

    fn options(scenario: &Scenario) -> (TcpOptions, AlgorithmSpec) {
        match &scenario.groups[0].transport {
            Transport::Tcp {
                options,
                congestion,
            } => (options.clone(), congestion.clone()),
            _ => panic!("no TCP"),
        }
    }

    /// Returns the plan of the host that opens the connections.
    fn namespace(scenario: &Scenario) -> HostPlan {
        Plan::new(scenario).unwrap().hosts.remove(0)
    }

    #[test]
    fn the_default_tcp_options_are_supported_by_the_kernel() {
        let (options, congestion) = options(&scenario(&[]));
        assert_eq!(unsupported(&options), []);
        let expected = TcpSettings {
            congestion: Some("cubic".to_owned()),
            mss: Some(options.mss),
            ..TcpSettings::default()
        };
        assert_eq!(socket_settings(&options, &congestion), expected);
    }

    #[test]
    fn every_tcp_option_is_applied_or_refused() {
        // Every key is refused, or is a setting of a socket or a namespace.
        let changes = [
            ("mss", "64B"),
            ("mss", "1000B"),
            ("handshake", "false"),
            ("ecn", "rfc3168"),
            ("sack", "false"),
            ("timestamps", "false"),
            ("recovery", "rfc6675"),
            ("limited_transmit", "false"),
            ("prr", "false"),
            ("ack_every", "1"),
            ("delayed_ack_timeout", "10ms"),
            ("delayed_ack_timeout", "300ms"),
            ("quick_ack_segments", "0"),
            ("push_small_windows", "false"),
            ("initial_rto", "3s"),
            ("min_rto", "5ms"),
            ("min_rto", "300ms"),
            ("rto_floor", "rfc6298"),
            ("early_timer_margin", "0s"),
            ("frto", "false"),
            ("partial_ack_timer", "first"),
            ("max_rto", "10s"),
            ("max_rto", "500ms"),
            ("pacing", "window"),
            ("tso_segments", "4"),
            ("send_buffer", "1MB"),
            ("send_buffer", "unlimited"),
            ("receive_buffer", "1MB"),
            ("receive_buffer", "unlimited"),
            ("idle_restart", "false"),
            ("nagle", "true"),
            ("small_queues", "false"),
        ];
        let usual = scenario(&[]);
        let (default, cubic) = options(&usual);
        for (key, value) in changes {
            let other = scenario(&[(&format!("tcp.{key}"), value)]);
            let (changed, _) = options(&other);
            let refused = unsupported(&changed);
            let at_socket = socket_settings(&changed, &cubic) != socket_settings(&default, &cubic);
            let in_namespace = namespace(&other) != namespace(&usual);
            let by_key = refused.iter().any(|refused| refused.key == key);
            assert!(by_key || at_socket || in_namespace, "{key} = {value}");
            assert!(refused.is_empty() || by_key, "{key} = {value}: {refused:?}");
        }
    }

    #[test]
    fn algorithms_have_kernel_names() {
        let newreno = AlgorithmSpec::new("newreno").unwrap();
        assert_eq!(kernel_name(&newreno), "reno");
    }
}
