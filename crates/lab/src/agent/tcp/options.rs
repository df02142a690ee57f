//! Which of a scenario's TCP options a kernel's sockets can honour, which its network namespaces can,
//! and which nobody can.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_scenario::{Pacing, Recovery, TcpEcn, TcpOptions};
use weir_units::{ByteSize, Duration};

use crate::control::KernelTcp;

/// What `TCP_MAXSEG` takes (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` of the kernel).
const SEGMENTS: std::ops::RangeInclusive<u64> = 88..=32_767;
/// Linux's `TCP_RTO_MIN`, `TCP_RTO_MAX` and `TCP_DELACK_MIN`.
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(120);
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// What `TCP_DELACK_MAX_US` takes at most.
const LONGEST_DELAYED_ACK: Duration = Duration::from_millis(200);
/// Linux's initial retransmission time-out (RFC 6298).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// The largest buffers of Linux's automatic tuning: `tcp_wmem`, `tcp_rmem`.
const SEND_BUFFER: ByteSize = ByteSize::from_mib(4);
const RECEIVE_BUFFER: ByteSize = ByteSize::from_mib(6);

/// An option that a scenario sets and the kernel does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The key in `[groups.NAME.tcp]`, or the parameter of `congestion`.
    pub key: &'static str,
    /// What the scenario says.
    pub asked: String,
    /// What the kernel does.
    pub kernel: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, asked, kernel } = self;
        write!(
            f,
            "`{key}` is {asked} in the scenario; the kernel: {kernel}"
        )
    }
}

/// A setting of a host's network namespace, below `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSetting {
    /// Its path: `net/ipv4/tcp_sack`.
    pub path: &'static str,
    /// Its value.
    pub value: &'static str,
}

impl KernelTcp {
    /// What a socket is set to for these options under this congestion control. The rest of them is
    /// [`namespace_settings`] and [`unsupported`].
    pub fn of(options: &TcpOptions, congestion: &AlgorithmSpec) -> Self {
        let changed = |value: Duration, linux: Duration| (value != linux).then_some(value);
        Self {
            congestion: Some(kernel_name(congestion).to_owned()),
            mss: Some(options.mss).filter(|mss| SEGMENTS.contains(&mss.bytes())),
            nagle: options.nagle,
            send_buffer: options.send_buffer.filter(|size| *size != SEND_BUFFER),
            receive_buffer: options
                .receive_buffer
                .filter(|size| *size != RECEIVE_BUFFER),
            min_rto: changed(options.min_rto, MIN_RTO).filter(|_| takes_min_rto(options)),
            max_rto: changed(options.max_rto, MAX_RTO).filter(|_| takes_max_rto(options)),
            delayed_ack_timeout: changed(options.delayed_ack.delayed_ack_timeout, DELAYED_ACK)
                .filter(|_| takes_delayed_ack(options)),
            paced: options.pacing == Pacing::Window,
        }
    }
}

/// The kernel's name of an algorithm.
pub fn kernel_name(congestion: &AlgorithmSpec) -> &'static str {
    match congestion.name() {
        "newreno" => "reno",
        name => name,
    }
}

/// What a namespace in which such connections begin or end has to be set to. Groups that ask for
/// different values of one setting cannot share a host.
pub fn namespace_settings(options: &TcpOptions) -> Vec<NamespaceSetting> {
    let switch = |path, on| NamespaceSetting {
        path,
        value: if on { "1" } else { "0" },
    };
    vec![
        switch("net/ipv4/tcp_ecn", options.ecn != TcpEcn::Off),
        switch("net/ipv4/tcp_sack", options.sack),
        switch("net/ipv4/tcp_timestamps", options.timestamps),
        switch("net/ipv4/tcp_slow_start_after_idle", options.idle_restart),
    ]
}

/// What neither a socket nor a namespace can be told.
pub fn unsupported(options: &TcpOptions) -> Vec<Unsupported> {
    let mut found = Vec::new();
    let mut refuse = |refused: bool, key, asked: &dyn fmt::Display, kernel| {
        if refused {
            let asked = asked.to_string();
            found.push(Unsupported { key, asked, kernel });
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
        ack.ack_every != 2,
        "ack_every",
        &ack.ack_every,
        "2 segments, and fewer while it finds the peer interactive",
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

/// The parameters of a congestion control that the kernel's has none of: `(name, value)`.
pub fn unsupported_parameters(congestion: &AlgorithmSpec) -> Vec<Unsupported> {
    let values = congestion.values();
    let refused = values.map(|(key, value)| Unsupported {
        key,
        asked: value.to_string(),
        kernel: "its congestion controls take no parameters per connection",
    });
    refused.collect()
}

fn takes_min_rto(options: &TcpOptions) -> bool {
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

    fn options(settings: &[(&str, &str)]) -> (TcpOptions, AlgorithmSpec) {
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
        let loaded = Scenario::parse("test.toml", text, &settings).unwrap();
        match &loaded.scenario.groups[0].transport {
            Transport::Tcp {
                options,
                congestion,
            } => (options.clone(), congestion.clone()),
            _ => panic!("no TCP"),
        }
    }

    #[test]
    fn the_kernel_can_do_what_is_the_default() {
        let (options, congestion) = options(&[]);
        assert_eq!(unsupported(&options), []);
        assert_eq!(unsupported_parameters(&congestion), []);
        let expected = KernelTcp {
            congestion: Some("cubic".to_owned()),
            mss: Some(options.mss),
            ..KernelTcp::default()
        };
        assert_eq!(KernelTcp::of(&options, &congestion), expected);
    }

    #[test]
    fn nothing_is_ignored_silently() {
        // Every key: refused, a socket's or a namespace's.
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
            ("initial_rto", "3s"),
            ("min_rto", "5ms"),
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
        let (default, cubic) = options(&[]);
        for (key, value) in changes {
            let (changed, _) = options(&[(&format!("tcp.{key}"), value)]);
            let refused = unsupported(&changed);
            let at_socket = KernelTcp::of(&changed, &cubic) != KernelTcp::of(&default, &cubic);
            let in_namespace = namespace_settings(&changed) != namespace_settings(&default);
            let by_key = refused.iter().any(|refused| refused.key == key);
            assert!(by_key || at_socket || in_namespace, "{key} = {value}");
            assert!(refused.is_empty() || by_key, "{key} = {value}: {refused:?}");
        }
    }

    #[test]
    fn parameters_are_not_the_kernels() {
        let (_, congestion) = options(&[("congestion.name", "dctcp"), ("congestion.g", "0.5")]);
        let refused = unsupported_parameters(&congestion);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].to_string().contains("`g` is 0.5"), "{refused:?}");
        let newreno = AlgorithmSpec::new("newreno").unwrap();
        assert_eq!(kernel_name(&newreno), "reno");
    }
}
