//! Converts the command line to a measurement plan.

use std::time::SystemTime;

use weir_traffic::calls::Network;
use weir_traffic::calls::Placement;
use weir_traffic::calls::TransportSpecification;
use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::paper::{BASELINE, SUBJECT};
use weir_traffic::calls::run::{Latency, Plan, Servers};
use weir_units::ByteSize;

use super::{Rpc, remote};
use crate::failure::Failure;

/// TCP and TLS whose first data go with the SYN.
const RIVAL: &str = "tcp-tls+fast-open";

/// The number of rounds of each case; the transports alternate.
const ROUNDS: u32 = 5;

/// Calls at the start of each round that are not measured.
const WARM_UP: u32 = 10;

impl Rpc {
    pub(super) fn plan(&self, transports: Vec<TransportSpecification>) -> Result<Plan, Failure> {
        let (servers, network) = match (&self.connect, self.pin) {
            (Some(host), Some(pin)) => (
                remote::servers(host, pin, &transports, self.timeout)?,
                Network::between_machines(),
            ),
            _ => (
                Servers::Local(new_identity().map_err(Failure::of)?),
                Network::loopback(),
            ),
        };
        Ok(Plan {
            transports,
            placements: self.placements()?,
            servers,
            network,
            latencies: self.latencies(),
            bulk: None,
            mixes: Vec::new(),
            open_mixes: Vec::new(),
            baselines: vec![BASELINE.to_owned()],
            limit: self.timeout,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        })
    }

    /// Returns the transports, each with the settings that apply to it.
    pub(super) fn transports(&self) -> Result<Vec<TransportSpecification>, Failure> {
        let drivers = weir_traffic::calls::standard_drivers();
        let mut transports = Vec::new();
        for specification in self.listed()? {
            drivers
                .get(&specification.driver)
                .map_err(|error| Failure::option("transports", error))?;
            let mut specification = specification;
            if specification.driver == SUBJECT {
                self.apply_settings(&mut specification)?;
                transports.push(specification.clone());
                if !self.low_latency || specification.spin {
                    continue;
                }
                specification.spin = true;
            }
            transports.push(specification);
        }
        let has_subject = transports.iter().any(|of| of.driver == SUBJECT);
        let settings = [
            ("congestion", self.congestion.is_some()),
            ("mps", self.mps.is_some()),
            ("low-latency", self.low_latency),
        ];
        match settings.iter().find(|(_, is_set)| *is_set && !has_subject) {
            Some((name, _)) => Err(Failure::option(
                name,
                format!("it is a setting of {SUBJECT}, which is not among --transports"),
            )),
            None => Ok(transports),
        }
    }

    /// Returns the transports of the command line, or DCQUIC and TCP with TLS, which also has TCP Fast
    /// Open where this machine has it.
    fn listed(&self) -> Result<Vec<TransportSpecification>, Failure> {
        if !self.transports.is_empty() {
            return Ok(self.transports.clone());
        }
        let names = match self.missing_rival() {
            None => &[SUBJECT, BASELINE, RIVAL][..],
            Some(_) => &[SUBJECT, BASELINE],
        };
        let parsed = names.iter().map(|name| name.parse());
        parsed.collect::<Result<_, _>>().map_err(Failure::of)
    }

    /// Returns why the strongest rival is not measured, although nobody has chosen the transports.
    pub(super) fn missing_rival(&self) -> Option<String> {
        if !self.transports.is_empty() || self.connect.is_some() || self.server.is_some() {
            return None;
        }
        let missing = weir_traffic::tcp::check_fast_open().err()?;
        Some(missing.to_string())
    }

    fn apply_settings(&self, specification: &mut TransportSpecification) -> Result<(), Failure> {
        if let Some(congestion) = &self.congestion {
            specification.congestion = Some(congestion.to_string());
        }
        if let Some(size) = self.mps {
            let in_range = u16::try_from(size.bytes()).ok();
            let in_range = in_range.filter(|size| (1200..=65_507).contains(size));
            let wrong =
                || Failure::option("mps", format!("{size}: it must be from 1200B to 65507B"));
            specification.packet_size = Some(in_range.ok_or_else(wrong)?);
        }
        if let Some(text) = &specification.congestion {
            text.parse::<weir_congestion::AlgorithmSpec>()
                .map_err(|error| Failure::option("transports", error))?;
        }
        Ok(())
    }

    /// Returns the requested placements; by default all for which the machine has enough cores.
    fn placements(&self) -> Result<Vec<Placement>, Failure> {
        if self.placement.is_empty() {
            let fits = |placement: &Placement| placement.processors().is_ok();
            return Ok(match self.connect {
                Some(_) => vec![Placement::Free],
                None => [Placement::OneCore, Placement::TwoCores]
                    .into_iter()
                    .filter(fits)
                    .collect(),
            });
        }
        for placement in &self.placement {
            placement
                .processors()
                .map_err(|error| Failure::option("placement", error))?;
        }
        Ok(self.placement.clone())
    }

    /// Returns the latencies of the paper's Figure 2, the same with resumption, and on an open
    /// connection.
    fn latencies(&self) -> Vec<Latency> {
        let latency = |phase, size| Latency {
            phase,
            size,
            iterations: self.iterations,
            rounds: ROUNDS.min(self.iterations),
            warm_up: WARM_UP,
        };
        let mut latencies = vec![latency(Phase::Handshake, ByteSize::ZERO)];
        for phase in [
            Phase::Fresh,
            Phase::Resumed,
            Phase::Known,
            Phase::Established,
        ] {
            latencies.extend(self.sizes.iter().map(|size| latency(phase, *size)));
        }
        latencies
    }
}
