//! The processes of a transport: a client and its servers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use weir_net::tls::Identity;
use weir_units::Duration;

use super::{BulkPlan, Servers};
use crate::calls::error::Error;
use crate::calls::identity::certificate;
use crate::calls::interrupts::TimerInterrupts;
use crate::calls::measure::Times;
use crate::calls::message::{Answer, Command, Place, Role};
use crate::calls::mix::MixTimes;
use crate::calls::network::{Namespaces, Network};
use crate::calls::placement::Processors;
use crate::calls::process::{Launcher, Worker};
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;

/// The options of a pair.
pub(super) struct Setting<'a> {
    pub(super) specification: &'a TransportSpecification,
    pub(super) servers: &'a Servers,
    pub(super) network: &'a Network,
    /// Whether a local server that accepts early data is also started.
    pub(super) early_data: bool,
    pub(super) processors: &'a Processors,
    pub(super) limit: Duration,
}

/// A client process and, if they are local, its server processes.
pub(super) struct Pair {
    client: Worker,
    /// The servers without and, where connections are resumed, with early data; none if they are remote.
    servers: Vec<Worker>,
    notes: Vec<String>,
    /// The processors of both sides; empty where the scheduler chooses or the server is remote.
    processors: Vec<usize>,
    limit: Duration,
}

/// Processor time of local servers and their client.
#[derive(Clone, Copy, Default)]
pub(super) struct ProcessorTimes {
    pub(super) client: Duration,
    pub(super) server: Duration,
}

/// The times of one block of iterations, and what they cost both sides.
pub(super) struct Block {
    pub(super) times: Times,
    pub(super) processor: Option<ProcessorTimes>,
    /// Timer interrupts beyond the tick.
    pub(super) interrupts: Option<u64>,
}

/// One download.
pub(super) struct Download {
    pub(super) elapsed: Duration,
    /// Processor time of the client.
    pub(super) client: Duration,
    /// Processor time of the server, if it is local.
    pub(super) server: Option<Duration>,
}

impl Pair {
    pub(super) fn start(launcher: &Launcher, setting: &Setting<'_>) -> Result<Self, Error> {
        match setting.servers {
            Servers::Local(identity) => {
                let (server, address, notes) = start_server(launcher, setting, identity, false)?;
                let early_data = if setting.early_data {
                    let (server, address, _) = start_server(launcher, setting, identity, true)?;
                    Some((server, address))
                } else {
                    None
                };
                let trust = Trust::Certificate(certificate(identity));
                let early_data_address = early_data.as_ref().map(|(_, address)| *address);
                let client = start_client(launcher, setting, address, early_data_address, trust)?;
                Ok(Self {
                    client,
                    servers: std::iter::once(server)
                        .chain(early_data.map(|(server, _)| server))
                        .collect(),
                    notes,
                    processors: union(setting.processors),
                    limit: setting.limit,
                })
            }
            Servers::Remote { addresses, trust } => {
                let name = setting.specification.to_string();
                let remote = addresses
                    .get(&name)
                    .ok_or_else(|| Error::UnknownTransport {
                        name,
                        known: addresses.keys().cloned().collect::<Vec<_>>().join(", "),
                    })?;
                let trust = trust.clone();
                Ok(Self {
                    client: start_client(launcher, setting, remote.full, remote.early_data, trust)?,
                    servers: Vec::new(),
                    notes: vec![format!("server at {}", remote.full)],
                    processors: Vec::new(),
                    limit: setting.limit,
                })
            }
        }
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Measures one block, and the processor time of both sides.
    pub(super) fn samples(&mut self, command: &Command) -> Result<Block, Error> {
        let before = self.processor_time()?;
        let interrupts = TimerInterrupts::read(&self.processors);
        let times = match self.client.request(command, self.limit)? {
            Answer::Samples(times) => times,
            other => return Err(unexpected(&other)),
        };
        let interrupts = TimerInterrupts::read(&self.processors)
            .zip(interrupts)
            .map(|(after, before)| after.beyond_tick_since(&before));
        let after = self.processor_time()?;
        Ok(Block {
            times,
            processor: before.zip(after).map(|(before, after)| ProcessorTimes {
                client: after.client - before.client,
                server: after.server - before.server,
            }),
            interrupts,
        })
    }

    /// Returns the processor time that all processes have used; `None` if the servers are not local.
    fn processor_time(&mut self) -> Result<Option<ProcessorTimes>, Error> {
        let client = match self.client.request(&Command::ProcessorTime, self.limit)? {
            Answer::ProcessorTime(nanoseconds) => Duration::from_nanos(nanoseconds),
            other => return Err(unexpected(&other)),
        };
        let server = self.server_time()?;
        Ok(server.map(|server| ProcessorTimes { client, server }))
    }

    pub(super) fn mix(&mut self, command: &Command) -> Result<MixTimes, Error> {
        match self.client.request(command, self.limit)? {
            Answer::Mix(times) => Ok(times),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) fn download(&mut self, plan: BulkPlan) -> Result<Download, Error> {
        let open = Command::Open {
            warm_up_bytes: plan.warm_up.bytes(),
        };
        self.client.request(&open, self.limit)?;
        let before = self.server_time()?;
        let download = Command::Download {
            size_bytes: plan.size.bytes(),
        };
        let Answer::Downloaded {
            elapsed_ns,
            processor_ns,
        } = self.client.request(&download, self.limit)?
        else {
            return Err(unexpected(&Answer::Done));
        };
        let after = self.server_time()?;
        Ok(Download {
            elapsed: Duration::from_nanos(elapsed_ns),
            client: Duration::from_nanos(processor_ns),
            server: before.zip(after).map(|(before, after)| after - before),
        })
    }

    /// Returns the processor time that the servers have used; `None` if they are not local.
    fn server_time(&mut self) -> Result<Option<Duration>, Error> {
        let mut total = None;
        for server in &mut self.servers {
            match server.request(&Command::ProcessorTime, self.limit)? {
                Answer::ProcessorTime(nanoseconds) => {
                    *total.get_or_insert(Duration::ZERO) += Duration::from_nanos(nanoseconds);
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(total)
    }
}

/// Returns the processors of both sides, each once.
fn union(processors: &Processors) -> Vec<usize> {
    let both = processors.client.iter().chain(&processors.server);
    let both: BTreeSet<usize> = both.copied().collect();
    both.into_iter().collect()
}

fn start_server(
    launcher: &Launcher,
    setting: &Setting<'_>,
    identity: &Identity,
    early_data: bool,
) -> Result<(Worker, SocketAddr, Vec<String>), Error> {
    let role = Role::Server {
        specification: setting.specification.clone(),
        bind: SocketAddr::new(setting.network.server, 0),
        certificate: certificate(identity),
        key: identity.private_key().secret_der().to_vec(),
        early_data,
        place: Place {
            namespace: namespace(setting, |both| &both.server),
            processors: setting.processors.server.clone(),
        },
    };
    let name = format!("the {} server", setting.specification);
    let (worker, ready) = launcher.start(name, &role, setting.limit)?;
    match ready {
        Answer::Listening { address, notes, .. } => Ok((worker, address, notes)),
        other => Err(unexpected(&other)),
    }
}

fn start_client(
    launcher: &Launcher,
    setting: &Setting<'_>,
    server: SocketAddr,
    early_data_server: Option<SocketAddr>,
    trust: Trust,
) -> Result<Worker, Error> {
    let role = Role::Client {
        specification: setting.specification.clone(),
        server,
        early_data_server,
        trust,
        place: Place {
            namespace: namespace(setting, |both| &both.client),
            processors: setting.processors.client.clone(),
        },
    };
    let name = format!("the {} client", setting.specification);
    Ok(launcher.start(name, &role, setting.limit)?.0)
}

/// Returns the network namespace of one side, unless it is this process's.
fn namespace(setting: &Setting<'_>, side: fn(&Namespaces) -> &PathBuf) -> Option<PathBuf> {
    setting.network.namespaces.as_ref().map(side).cloned()
}

fn unexpected(answer: &Answer) -> Error {
    Error::Worker {
        worker: "a worker".to_owned(),
        message: format!("unexpected answer {answer:?}"),
    }
}
