//! The host processes. They start in parallel and are killed when [`Processes`] is dropped.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_enforce::port::Tap;

use crate::LabError;
use crate::handover;
use crate::host::HostAnswer;
use crate::plan::{HostPlan, Plan};
use crate::runs::HostRecord;

/// The subcommand of `weir` that runs a host ([`crate::host::run`]).
pub const HOST_COMMAND: &str = "lab-host";

/// All hosts of a run. They die with the thread that started them.
#[derive(Debug)]
pub(super) struct Processes {
    hosts: Vec<HostProcess>,
}

#[derive(Debug)]
struct HostProcess {
    name: String,
    child: Child,
    control: UnixStream,
}

/// The interfaces and refused settings of a host.
pub(super) struct PreparedHost {
    /// The other ends of its interfaces, in order.
    pub(super) taps: Vec<Tap>,
    /// Settings that the kernel does not have.
    pub(super) refused: Vec<String>,
}

impl Processes {
    /// Starts a process for each host, and sends it its plan.
    pub(super) fn start(plan: &Plan) -> Result<Self, LabError> {
        raise_limit().map_err(LabError::system("allowing for open files"))?;
        let mut processes = Self { hosts: Vec::new() };
        for host in &plan.hosts {
            processes.hosts.push(HostProcess::start(host)?);
        }
        for (process, plan) in processes.hosts.iter_mut().zip(&plan.hosts) {
            let sent = handover::send(&process.control, plan, &[]);
            sent.map_err(|error| process.broken("giving a host its plan", error))?;
        }
        Ok(processes)
    }

    /// Returns the hosts' records for the run directory.
    pub(super) fn records(&self) -> Vec<HostRecord> {
        let hosts = self.hosts.iter();
        hosts
            .map(|host| HostRecord::of(&host.name, host.child.id()))
            .collect()
    }

    /// Waits until all hosts have created their namespaces.
    pub(super) fn built(&mut self) -> Result<Vec<PreparedHost>, LabError> {
        self.hosts.iter_mut().map(HostProcess::built).collect()
    }

    /// Returns the control sockets, in the order of the hosts.
    pub(super) fn controls(&self) -> Result<Vec<UnixStream>, LabError> {
        let controls = self.hosts.iter().map(|host| host.control.try_clone());
        let controls: Result<_, _> = controls.collect();
        controls.map_err(LabError::system("copying a descriptor"))
    }

    /// Returns the error for a host whose socket is closed.
    pub(super) fn gone(&mut self, host: usize) -> LabError {
        match self.hosts.get_mut(host) {
            Some(process) => process.gone(),
            None => LabError::System {
                doing: "listening to hosts",
                source: ErrorKind::NotFound.into(),
            },
        }
    }
}

impl HostProcess {
    fn start(plan: &HostPlan) -> Result<Self, LabError> {
        let pair = UnixStream::pair();
        let (control, theirs) = pair.map_err(LabError::system("making a control socket"))?;
        let child = Command::new("/proc/self/exe")
            .arg(HOST_COMMAND)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // Ctrl-C goes to the director only, which then has the hosts report.
            .process_group(0)
            .spawn()
            .map_err(LabError::system("starting a host process"))?;
        Ok(Self {
            name: plan.name.clone(),
            child,
            control,
        })
    }

    fn built(&mut self) -> Result<PreparedHost, LabError> {
        let received = handover::receive(&self.control);
        let received = received.map_err(|error| self.broken("listening to a host", error));
        let (line, descriptors) = received?;
        if line.is_empty() {
            return Err(self.gone());
        }
        let answer = serde_json::from_slice(&line).map_err(|source| LabError::Message {
            host: self.name.clone(),
            source: source.into(),
        })?;
        match answer {
            HostAnswer::Built { refused } => Ok(PreparedHost {
                taps: descriptors.into_iter().map(Tap::from).collect(),
                refused,
            }),
            HostAnswer::Failed(problem) => Err(LabError::Host {
                host: self.name.clone(),
                problem,
            }),
        }
    }

    /// Returns the error for a failure of the control socket.
    fn broken(&mut self, doing: &'static str, error: io::Error) -> LabError {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.gone(),
            _ => LabError::system(doing)(error),
        }
    }

    fn gone(&mut self) -> LabError {
        let how = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        LabError::HostGone {
            host: self.name.clone(),
            how,
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            // A process that has already ended needs no kill.
            let _ = host.child.kill();
        }
        for host in &mut self.hosts {
            let _ = host.child.wait();
        }
    }
}

/// Raises the limit of open files of this process and its hosts to the maximum.
fn raise_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, limit)?)
}
