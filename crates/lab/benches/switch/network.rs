//! Two hosts and the switch between them.

use std::net::{IpAddr, Ipv4Addr};

use rustix::time::{ClockId, clock_gettime};
use weir_enforce::port::{PacketSocket, Port, Tap};
use weir_lab::switch::{AddressOwners, HostSocket, SwitchHandle, SwitchReport, SwitchSetup, start};
use weir_scenario::{PortIndex, Scenario};
use weir_units::{Duration, Rate};

use crate::Failure;
use crate::host::Namespace;

/// The kind of port by which frames reach the switch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Tap,
    PacketSocket,
}

/// The settings of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// The rate of all links.
    pub(crate) rate: Rate,
    /// The delay from one host to the other.
    pub(crate) delay: Duration,
    /// The most segments of a super-packet.
    pub(crate) segments: Option<u32>,
    /// Whether the kernel segments super-packets before it hands them over.
    pub(crate) cut: bool,
    /// Whether SED's agent is in the switch.
    pub(crate) sed: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Tap,
            rate: Rate::MAX,
            delay: Duration::ZERO,
            segments: None,
            cut: false,
            sed: false,
        }
    }
}

/// Two hosts, the first of which sends, and the switch.
pub(crate) struct Network {
    pub(crate) hosts: [Namespace; 2],
    switch: SwitchHandle,
    /// The namespace of the outer ends of veth pairs.
    _middle: Namespace,
}

pub(crate) const ADDRESSES: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 200, 0, 1), Ipv4Addr::new(10, 200, 0, 2)];

const SCENARIO: &str = r#"
title = "Two hosts"
source = "the live lab's benchmark"
duration = "60s"
[star]
rate = "1Gbps"
delay = "0ns"
queue = "unlimited"
[star.hosts.a]
[star.hosts.b]
[groups.flow]
from = "a"
to = "b"
workload = "bulk"
"#;

/// The threshold is never reached.
const SED: &str = "\n[sed]\nrtt = \"100us\"\nthreshold = \"100MB\"\n";

/// Two hosts, and the ports of their frames.
pub(crate) struct Ends {
    pub(crate) hosts: [Namespace; 2],
    pub(crate) devices: [Port; 2],
    /// The namespace of the outer ends of veth pairs.
    pub(crate) middle: Namespace,
}

impl Ends {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        let (hosts, middle) = ([Namespace::new()?, Namespace::new()?], Namespace::new()?);
        let device = |host: &Namespace, number| {
            let device = match settings.kind {
                Kind::Tap => tap(host)?,
                Kind::PacketSocket => veth(host, &middle, number)?,
            };
            configure(host, number, settings)?;
            Ok::<_, Failure>(device)
        };
        let devices = [device(&hosts[0], 1)?, device(&hosts[1], 2)?];
        Ok(Self {
            hosts,
            devices,
            middle,
        })
    }
}

/// Returns the Ethernet address of a host.
fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

impl Network {
    pub(crate) fn new(settings: Settings) -> Result<Self, Failure> {
        let text = SCENARIO.to_owned() + if settings.sed { SED } else { "" };
        let mut scenario = Scenario::parse("benchmark", &text, &[])?.scenario;
        let topology = &mut scenario.topology;
        for port in &mut topology.ports {
            port.rate = settings.rate;
            // The path from one host to the other has two links.
            port.delay = Duration::from_nanos(settings.delay.as_nanos() / 2);
        }
        let own: Vec<PortIndex> = topology
            .port_indices()
            .filter(|index| topology.port(*index).from.host().is_some())
            .collect();
        scenario.measurements.ports = own.last().map(|port| port.reverse()).into_iter().collect();
        let Ends {
            hosts,
            devices,
            middle,
        } = Ends::new(&settings)?;
        let sockets = (1_u8..).zip(devices).zip(&own);
        let sockets = sockets.map(|((number, device), port)| HostSocket {
            port: *port,
            device,
            mac: mac(number),
        });
        let sockets = sockets.collect();
        let addresses = ADDRESSES.into_iter().map(IpAddr::V4).zip(own).collect();
        let now = clock_gettime(ClockId::Monotonic);
        let switch = start(SwitchSetup {
            scenario: &scenario,
            epoch: now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64,
            sockets,
            addresses,
            owners: AddressOwners::default(),
            demands: Vec::new(),
            capture: None,
        })?;
        Ok(Self {
            hosts,
            switch,
            _middle: middle,
        })
    }

    /// Begins the measurement.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        Ok(self.switch.begin()?)
    }

    pub(crate) fn stop(self) -> Result<SwitchReport, Failure> {
        Ok(self.switch.stop()?)
    }
}

fn tap(host: &Namespace) -> Result<Port, Failure> {
    Ok(host.run(|| Tap::create("eth0"))??.into())
}

fn veth(host: &Namespace, middle: &Namespace, number: u8) -> Result<Port, Failure> {
    // The pair is created inside; its outer end is moved to the namespace of the middle thread.
    let middle_id =
        middle.run(|| Ok::<_, Failure>(rustix::thread::gettid().as_raw_nonzero()))??;
    let outer = format!("port{number}");
    host.ip(&format!(
        "link add eth0 type veth peer name {outer} netns {middle_id}"
    ))?;
    middle.ip(&format!("link set {outer} up"))?;
    Ok(middle.run(move || PacketSocket::bind(&outer))??.into())
}

fn configure(host: &Namespace, number: u8, settings: &Settings) -> Result<(), Failure> {
    let peer = 3 - number;
    host.ip("link set lo up")?;
    host.ip(&format!("link set eth0 address 02:00:00:00:00:0{number}"))?;
    if settings.cut {
        host.run(|| switch_off_tso("eth0"))??;
    }
    if let Some(segments) = settings.segments {
        host.ip(&format!("link set eth0 gso_max_segs {segments}"))?;
    }
    host.ip("link set eth0 up")?;
    host.ip(&format!("address add 10.200.0.{number}/24 dev eth0"))?;
    host.ip(&format!(
        "neighbour add 10.200.0.{peer} lladdr 02:00:00:00:00:0{peer} dev eth0"
    ))
}

/// Does `ethtool -K NAME tso off`: TCP still makes super-packets, and the kernel segments them last.
fn switch_off_tso(name: &str) -> std::io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_STSO: u32 = 0x1f;
    let mut value = [ETHTOOL_STSO, 0];
    let mut ifr_name = [0; libc::IFNAMSIZ];
    for (place, byte) in ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let request = libc::ifreq {
        ifr_name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: value.as_mut_ptr().cast(),
        },
    };
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    // SAFETY: the request names `value`, which is an `ethtool_value`; both live until the call returns.
    let result = unsafe {
        libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            SIOCETHTOOL,
            std::ptr::from_ref(&request),
        )
    };
    match result {
        0.. => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
