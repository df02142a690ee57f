//! A host of the lab: a process in its own, unnamed network namespace, which lives exactly as long as
//! the process. The process dies with its director in all cases.
//!
//! The director starts it as `weir lab-host` with a socket as standard input. The host reads its plan
//! from the socket, answers with its interfaces' other ends, and then reads the orders for its endpoints
//! ([`crate::control`]).

mod interfaces;
mod messages;
mod namespace;

pub(crate) use messages::HostAnswer;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Signal, set_parent_process_death_signal};
use weir_enforce::port::Tap;

use crate::control::HostChange;
use crate::handover;
use crate::plan::HostPlan;
use interfaces::Interfaces;

/// Why a host process cannot run.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The process was not started by a director.
    #[error("this command is a part of `weir run --live`, and is of no use by itself")]
    NoDirector,
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The director sent an invalid message.
    #[error("the director sent what is no message: {0}")]
    Message(#[from] serde_json::Error),
    /// A TAP device could not be created.
    #[error(transparent)]
    Port(#[from] weir_enforce::port::PortError),
    /// The agent ended with an error.
    #[error(transparent)]
    Agent(#[from] crate::agent::AgentError),
}

impl HostError {
    /// Returns a function for `map_err`.
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}

/// Creates the interfaces of a plan in the calling thread's network namespace, with their addresses,
/// routes and neighbours, and brings loopback up. Returns their other ends, in the plan's order, for
/// [`crate::switch`]. The plan's kernel settings are left to the caller.
///
/// # Errors
/// No privilege, no `/dev/net/tun`, or an error of the kernel.
pub fn create_interfaces(plan: &HostPlan) -> Result<Vec<Tap>, HostError> {
    Ok(Interfaces::new(plan)?.1)
}

/// Runs as a host until the director closes its socket. Call it before the process starts a thread:
/// the namespace applies to the calling thread and to those that it starts.
///
/// # Errors
/// The process was not started by a director; the director sent an invalid message.
pub fn run() -> Result<(), HostError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| HostError::system("tying the process to its director")(errno.into()))?;
    let control = inherited()?;
    let (line, _) =
        handover::receive(&control).map_err(HostError::system("listening to the director"))?;
    if line.is_empty() {
        return Ok(());
    }
    let plan: HostPlan = serde_json::from_slice(&line)?;
    match build(&plan, &control) {
        Ok(interfaces) => endpoints(control, interfaces),
        Err(error) => {
            let failed = HostAnswer::Failed(error.to_string());
            let sent = handover::send(&control, &failed, &[]);
            sent.map_err(HostError::system("answering the director"))
        }
    }
}

/// Creates the namespace, and sends its interfaces' other ends to the director.
fn build(plan: &HostPlan, control: &UnixStream) -> Result<Interfaces, HostError> {
    namespace::leave()?;
    let refused = namespace::set(&plan.kernel)?;
    let (interfaces, taps) = Interfaces::new(plan)?;
    let taps: Vec<OwnedFd> = taps.into_iter().map(OwnedFd::from).collect();
    let taps: Vec<_> = taps.iter().map(AsFd::as_fd).collect();
    let sent = handover::send(control, &HostAnswer::Built { refused }, &taps);
    sent.map_err(HostError::system("handing over interfaces"))?;
    Ok(interfaces)
}

/// Runs the agent.
fn endpoints(control: UnixStream, mut interfaces: Interfaces) -> Result<(), HostError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HostError::system("starting the runtime"))?;
    runtime.block_on(async {
        let stream = control
            .set_nonblocking(true)
            .and_then(|()| tokio::net::UnixStream::from_std(control));
        let stream = stream.map_err(HostError::system("listening to the director"))?;
        let (orders, events) = stream.into_split();
        let change = |change: &HostChange| match interfaces.change(change) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        Ok(crate::agent::run(orders, events, change).await?)
    })
}

/// Returns the socket that the director passed as standard input.
fn inherited() -> Result<UnixStream, HostError> {
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(HostError::system("opening standard input"))?;
    match rustix::net::sockopt::socket_domain(&stdin) {
        Ok(rustix::net::AddressFamily::UNIX) => Ok(UnixStream::from(stdin)),
        _ => Err(HostError::NoDirector),
    }
}
