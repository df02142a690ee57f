//! The switch as its user sees it.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use weir_fabric::PortChange;
use weir_scenario::{PortIndex, Scenario};
use weir_sed::DemandRule;

use super::address_owners::AddressOwners;
use super::capture::CaptureSender;
use super::command::{HostSocket, PortReading, SwitchCommand};
use super::thread::{SwitchReport, SwitchThread};
use super::{SwitchError, schedule};
use crate::clock::Clock;

/// What the switch is made of.
#[derive(Debug)]
pub struct SwitchSetup<'a> {
    /// The network, what is in the paths of its switches, what is measured, and how exact it has to be.
    pub scenario: &'a Scenario,
    /// The run's time zero, in nanoseconds of `CLOCK_MONOTONIC`; it may be to come.
    pub epoch: u64,
    /// The interfaces of the hosts.
    pub sockets: Vec<HostSocket>,
    /// The addresses of the hosts, each with the host's port that packets for it come in by.
    pub addresses: Vec<(IpAddr, PortIndex)>,
    /// Whose all addresses are.
    pub owners: AddressOwners,
    /// What the controller of SED knows of flows, where there is one.
    pub demands: Vec<DemandRule>,
    /// Who copies the packets that pass the measured ports, if they are wanted.
    pub copier: Option<CaptureSender>,
}

/// A switch that runs. Dropped, it stops, and closes the hosts' interfaces.
#[derive(Debug)]
pub struct SwitchHandle {
    commands: Sender<SwitchCommand>,
    wake: Arc<OwnedFd>,
    /// Until it is stopped.
    thread: Option<JoinHandle<Result<SwitchReport, SwitchError>>>,
}

/// Starts a switch in a thread of its own, with real-time priority where that is allowed.
///
/// # Errors
/// A network that cannot be built; no thread.
pub fn start(setup: SwitchSetup<'_>) -> Result<SwitchHandle, SwitchError> {
    let (commands, orders) = channel();
    let (answer, started) = channel();
    let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
    let wake = eventfd(0, flags).map_err(SwitchError::at("making an eventfd"))?;
    let wake = Arc::new(wake);
    let scenario = setup.scenario.clone();
    let SwitchSetup {
        epoch,
        sockets,
        addresses,
        owners,
        demands,
        copier,
        ..
    } = setup;
    let woken = Arc::clone(&wake);
    // The elements of switches, which nobody else may touch, are built where they run.
    let run = move || {
        let real_time = schedule::raise_priority();
        let clock = Clock::since_now_or(epoch);
        let middle = (owners, demands);
        match SwitchThread::new(&scenario, clock, middle, sockets, &addresses) {
            Ok(runner) => {
                // Whoever does not wait for the answer has dropped the handle.
                let _ = answer.send(Ok(()));
                runner.with_copier(copier).run(&orders, &woken, real_time)
            }
            Err(error) => {
                let _ = answer.send(Err(error));
                Err(SwitchError::Gone)
            }
        }
    };
    let thread = std::thread::Builder::new()
        .name("weir-switch".to_owned())
        .spawn(run)
        .map_err(SwitchError::at("starting the switch's thread"))?;
    let handle = SwitchHandle {
        commands,
        wake,
        thread: Some(thread),
    };
    answer_of(&started)??;
    Ok(handle)
}

fn answer_of<T>(receiver: &Receiver<T>) -> Result<T, SwitchError> {
    receiver.recv().map_err(|_| SwitchError::Gone)
}

impl SwitchHandle {
    /// Changes a port's link from now on.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn apply(&self, port: PortIndex, change: PortChange) -> Result<(), SwitchError> {
        self.tell(SwitchCommand::Apply(port, change))
    }

    /// Packets for `address` come in by this port of a host from now on.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn assign(&self, address: IpAddr, port: PortIndex) -> Result<(), SwitchError> {
        self.tell(SwitchCommand::Assign(address, port))
    }

    /// Nobody has `address` from now on: packets for it are dropped as they come from their host.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn withdraw(&self, address: IpAddr) -> Result<(), SwitchError> {
        self.tell(SwitchCommand::Withdraw(address))
    }

    /// The warm-up is over: what is measured begins anew.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn begin(&self) -> Result<(), SwitchError> {
        self.tell(SwitchCommand::Begin)
    }

    /// The measured ports as they are. It blocks until the switch's thread has answered, which takes
    /// microseconds.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn sample(&self) -> Result<Vec<PortReading>, SwitchError> {
        let (answer, samples) = channel();
        self.tell(SwitchCommand::Sample(answer))?;
        answer_of(&samples)
    }

    /// Stops the switch.
    ///
    /// # Errors
    /// It has stopped before, and why.
    pub fn stop(mut self) -> Result<SwitchReport, SwitchError> {
        self.join().unwrap_or(Err(SwitchError::Gone))
    }

    fn tell(&self, command: SwitchCommand) -> Result<(), SwitchError> {
        let told = self.commands.send(command);
        // A counter that cannot take more wakes too.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        told.map_err(|_| SwitchError::Gone)
    }

    fn join(&mut self) -> Option<Result<SwitchReport, SwitchError>> {
        let thread = self.thread.take()?;
        // Where it is gone already, its result says why.
        let _ = self.tell(SwitchCommand::Stop);
        Some(thread.join().unwrap_or(Err(SwitchError::Gone)))
    }
}

impl Drop for SwitchHandle {
    fn drop(&mut self) {
        self.join();
    }
}
