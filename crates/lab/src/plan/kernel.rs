//! The kernel settings of a host: values that a namespace has only once.

use serde::{Deserialize, Serialize};
use weir_congestion::{AlgorithmSpec, Value};
use weir_scenario::{AddressFamily, Group, HostIndex, Scenario, TcpEcn, TcpOptions, Transport};
use weir_units::{ByteSize, Duration, Rate};

use super::PlanError;
use crate::tcp_options::{MIN_RTO, takes_min_rto};

/// A value below /proc/sys/net.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSetting {
    /// The path below /proc/sys/net.
    pub path: String,
    /// The value to write.
    pub value: String,
}

/// The longest transmission time of a super-packet that does not look like a burst to a queue. At 1 Gbps
/// it is 4 segments, below 243 Mbps one. If the kernel hands over 64 KB at once, Jain's index of 7 DCTCP
/// flows into one port falls from 0.98 to 0.20.
const BURST: Duration = Duration::from_micros(50);
/// A segment with its Ethernet header.
const SEGMENT: ByteSize = ByteSize::from_bytes(1514);
/// The congestion-control parameter that the kernel takes from a route.
pub(crate) const INITIAL_WINDOW: &str = "initial_window";
/// The number of segments in 64 KB.
const MOST_SEGMENTS: u64 = 64;

/// Returns the largest number of segments of a super-packet that does not look like a burst on a link.
pub(super) fn faithful_segments(rate: Rate) -> u32 {
    let segments = rate.size_in(BURST).bytes() / SEGMENT.bytes();
    u32::try_from(segments.clamp(1, MOST_SEGMENTS)).unwrap_or(1)
}

impl KernelSetting {
    /// Creates a setting of `value` at `path`.
    pub fn new(path: impl Into<String>, value: impl ToString) -> Self {
        Self {
            path: path.into(),
            value: value.to_string(),
        }
    }
}

/// Returns the kernel settings of `host`.
pub(super) fn settings(
    scenario: &Scenario,
    host: HostIndex,
) -> Result<Vec<KernelSetting>, PlanError> {
    let mut settings = links(scenario.live.address_family);
    let wishes = KernelRequirements::new(scenario, host);
    settings.extend(wishes.tcp()?);
    Ok(settings)
}

/// Returns the initial window of the TCP connections of `host` in packets, if its groups set one.
pub(super) fn initial_window(
    scenario: &Scenario,
    host: HostIndex,
) -> Result<Option<u32>, PlanError> {
    let wishes = KernelRequirements::new(scenario, host);
    // A group that sets none accepts the kernel's.
    wishes
        .common_value("congestion.initial_window", |(group, ..)| {
            let mut values = congestion(&group.transport)?.values();
            let window = values.find_map(|value| match value {
                (INITIAL_WINDOW, Value::Integer(packets)) => Some(packets),
                _ => None,
            });
            Some(window.and_then(|packets| u32::try_from(packets).ok()))
        })
        .map(Option::flatten)
}

/// Returns whether the TCP connections of `host` acknowledge every segment at once, as set by the groups
/// with flows to or from it.
pub(super) fn quick_acks(scenario: &Scenario, host: HostIndex) -> Result<bool, PlanError> {
    let wishes = KernelRequirements::new(scenario, host);
    let quick = wishes.common_value("tcp.ack_every", |(_, options, _)| {
        Some(options.delayed_ack.ack_every == 1)
    })?;
    Ok(quick.unwrap_or(false))
}

/// Interfaces send nothing on their own, and accept packets to their addresses.
fn links(family: AddressFamily) -> Vec<KernelSetting> {
    let mut settings = Vec::new();
    let has_v6 = family == AddressFamily::Ipv6;
    for scope in ["all", "default"] {
        settings.push(KernelSetting::new(
            format!("ipv4/conf/{scope}/rp_filter"),
            0,
        ));
        let v6 =
            |key: &str, value: u8| KernelSetting::new(format!("ipv6/conf/{scope}/{key}"), value);
        settings.push(v6("disable_ipv6", u8::from(!has_v6)));
        if has_v6 {
            // No duplicate-address detection, no link-local addresses, no router solicitations.
            settings.extend([
                v6("accept_dad", 0),
                v6("addr_gen_mode", 1),
                v6("accept_ra", 0),
                v6("router_solicitations", 0),
                v6("keep_addr_on_down", 1),
            ]);
        }
    }
    settings
}

/// The requirements of all groups with flows at a host.
struct KernelRequirements<'s> {
    host: &'s str,
    /// The TCP groups; the flag is set if the host opens the group's connections.
    tcp: Vec<(&'s Group, &'s TcpOptions, bool)>,
}

impl<'s> KernelRequirements<'s> {
    fn new(scenario: &'s Scenario, host: HostIndex) -> Self {
        let tcp = scenario.groups.iter().filter_map(|group| {
            let opens = group.from.contains(&host);
            let options = options(&group.transport)?;
            (opens || group.to.contains(&host)).then_some((group, options, opens))
        });
        Self {
            host: &scenario.topology.host(host).name,
            tcp: tcp.collect(),
        }
    }

    fn tcp(&self) -> Result<Vec<KernelSetting>, PlanError> {
        let mut settings = vec![
            // A connection must not reuse the path metrics of an earlier one.
            KernelSetting::new("ipv4/tcp_no_metrics_save", 1),
            KernelSetting::new("ipv4/tcp_ecn", self.ecn()?),
        ];
        let mut switch = |key: &'static str, path: &str, wish: fn(&TcpOptions) -> bool| {
            let wish = self.common_value(key, |(_, options, _)| Some(wish(options)));
            let wish = wish.map(|wish| wish.map(|on| KernelSetting::new(path, u8::from(on))));
            wish.map(|setting| settings.extend(setting))
        };
        switch("tcp.sack", "ipv4/tcp_sack", |tcp| tcp.sack)?;
        switch("tcp.timestamps", "ipv4/tcp_timestamps", |tcp| {
            tcp.timestamps
        })?;
        switch(
            "tcp.idle_restart",
            "ipv4/tcp_slow_start_after_idle",
            |tcp| tcp.idle_restart,
        )?;
        let frto = self.common_value("tcp.frto", |(_, options, _)| Some(options.frto))?;
        if frto == Some(false) {
            settings.push(KernelSetting::new("ipv4/tcp_frto", 0));
        }
        settings.extend(self.long_min_rto()?);
        Ok(settings)
    }

    /// The minimum RTO of all connections, where it is longer than a socket option may set it.
    fn long_min_rto(&self) -> Result<Option<KernelSetting>, PlanError> {
        let wish = |options: &TcpOptions| takes_min_rto(options).then_some(options.min_rto);
        let longest = self.tcp.iter().filter_map(|entry| wish(entry.1)).max();
        if longest.is_none_or(|longest| longest <= MIN_RTO) {
            return Ok(None);
        }
        let min_rto = self.common_value("tcp.min_rto", |(_, options, _)| wish(options))?;
        let setting = |span: Duration| KernelSetting::new("ipv4/tcp_rto_min_us", span.as_micros());
        Ok(min_rto.map(setting))
    }

    /// 1 requests and accepts ECN, 2 only accepts it. DCTCP's sockets request it themselves.
    fn ecn(&self) -> Result<u8, PlanError> {
        let asks = self.common_value("tcp.ecn", |(_, options, opens)| match options.ecn {
            TcpEcn::Dctcp => None,
            ecn => opens.then_some(ecn == TcpEcn::Rfc3168),
        })?;
        Ok(if asks == Some(true) { 1 } else { 2 })
    }

    /// Returns the common value of all groups that set one.
    fn common_value<T: PartialEq>(
        &self,
        key: &'static str,
        wish: impl Fn(&(&'s Group, &'s TcpOptions, bool)) -> Option<T>,
    ) -> Result<Option<T>, PlanError> {
        let wishes = self.tcp.iter();
        let mut wishes = wishes.filter_map(|entry| Some((entry.0, wish(entry)?)));
        let Some((one, first)) = wishes.next() else {
            return Ok(None);
        };
        match wishes.find(|(_, other)| *other != first) {
            Some((other, _)) => Err(PlanError::OneValuePerHost {
                host: self.host.to_owned(),
                key,
                one: one.name.clone(),
                other: other.name.clone(),
            }),
            None => Ok(Some(first)),
        }
    }
}

/// Returns the TCP options of TCP and TLS.
fn options(transport: &Transport) -> Option<&TcpOptions> {
    match transport {
        Transport::Tcp { options, .. } | Transport::Tls { options, .. } => Some(options),
        Transport::Udp { .. } | Transport::Quic { .. } | Transport::Dcudp { .. } => None,
    }
}

/// Returns the congestion control of TCP and TLS.
fn congestion(transport: &Transport) -> Option<&AlgorithmSpec> {
    match transport {
        Transport::Tcp { congestion, .. } | Transport::Tls { congestion, .. } => Some(congestion),
        Transport::Udp { .. } | Transport::Quic { .. } | Transport::Dcudp { .. } => None,
    }
}
