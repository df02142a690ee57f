//! The handle to a running switch.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use weir_fabric::PortChange;
use weir_scenario::{Port, PortIndex, Scenario, SharedBuffer, SwitchIndex};
use weir_sed::DemandRule;

use super::address_owners::AddressOwners;
use super::capture::CaptureSender;
use super::command::{HostSocket, PortReading, SwitchCommand};
use super::thread::{SwitchReport, SwitchThread};
use super::{SwitchError, schedule};
use crate::clock::Clock;

/// The parameters of a switch.
#[derive(Debug)]
pub struct SwitchSetup<'a> {
    /// The scenario: the network, the elements of its switches, the measured ports, the required fidelity.
    pub scenario: &'a Scenario,
    /// The run's epoch, in nanoseconds of `CLOCK_MONOTONIC`; it may be in the future.
    pub epoch: u64,
    /// The interfaces of the hosts.
    pub sockets: Vec<HostSocket>,
    /// The addresses of the hosts, each with the host's port that receives packets for it.
    pub addresses: Vec<(IpAddr, PortIndex)>,
    /// The owners of all addresses.
    pub owners: AddressOwners,
    /// The advance knowledge of SED's controller about flows, if there is a controller.
    pub demands: Vec<DemandRule>,
    /// Captures the packets that pass the measured ports, if wanted.
    pub capture: Option<CaptureSender>,
}

/// A running switch. Dropping it stops the switch and closes the hosts' interfaces.
#[derive(Debug)]
pub struct SwitchHandle {
    commands: Sender<SwitchCommand>,
    wake: Arc<OwnedFd>,
    /// `None` once stopped.
    thread: Option<JoinHandle<Result<SwitchReport, SwitchError>>>,
}

/// Starts a switch in its own thread, with real-time priority where allowed.
///
/// # Errors
/// The network cannot be built; the thread cannot be started.
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
        capture: copier,
        ..
    } = setup;
    let woken = Arc::clone(&wake);
    // The elements of switches belong to the thread that runs them, so they are built there.
    let run = move || {
        let real_time = schedule::raise_priority();
        let clock = Clock::since_now_or(epoch);
        let middle = (owners, demands);
        match SwitchThread::new(&scenario, clock, middle, sockets, &addresses) {
            Ok(runner) => {
                // If the caller does not wait for the answer, it has dropped the handle.
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
    /// Changes a port's link.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn apply(&self, port: PortIndex, change: PortChange) -> Result<(), SwitchError> {
        self.send(SwitchCommand::Apply(port, change))
    }

    /// Changes the thresholds of a port's queue to those of `settings`.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn change_queue(&self, port: PortIndex, settings: &Port) -> Result<(), SwitchError> {
        self.send(SwitchCommand::ChangeQueue(port, Box::new(settings.clone())))
    }

    /// Changes the shared buffer of a switch.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn change_shared_buffer(
        &self,
        switch: SwitchIndex,
        buffer: SharedBuffer,
    ) -> Result<(), SwitchError> {
        self.send(SwitchCommand::ChangeSharedBuffer(switch, buffer))
    }

    /// Routes packets for `address` to this port of a host.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn assign(&self, address: IpAddr, port: PortIndex) -> Result<(), SwitchError> {
        self.send(SwitchCommand::Assign(address, port))
    }

    /// Removes `address`: packets for it are dropped as they arrive from their host.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn withdraw(&self, address: IpAddr) -> Result<(), SwitchError> {
        self.send(SwitchCommand::Withdraw(address))
    }

    /// Resets all measurements at the end of the warm-up.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn begin(&self) -> Result<(), SwitchError> {
        self.send(SwitchCommand::Begin)
    }

    /// Reads the measured ports. Blocks until the switch's thread has answered, which takes
    /// microseconds.
    ///
    /// # Errors
    /// The switch has stopped.
    pub fn sample(&self) -> Result<Vec<PortReading>, SwitchError> {
        let (answer, samples) = channel();
        self.send(SwitchCommand::Sample(answer))?;
        answer_of(&samples)
    }

    /// Stops the switch.
    ///
    /// # Errors
    /// The switch has stopped earlier; the error that stopped it.
    pub fn stop(mut self) -> Result<SwitchReport, SwitchError> {
        self.join().unwrap_or(Err(SwitchError::Gone))
    }

    fn send(&self, command: SwitchCommand) -> Result<(), SwitchError> {
        let told = self.commands.send(command);
        // A write that overflows the counter fails, but the thread is awake then anyway.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        told.map_err(|_| SwitchError::Gone)
    }

    fn join(&mut self) -> Option<Result<SwitchReport, SwitchError>> {
        let thread = self.thread.take()?;
        // If the thread has ended already, its result has the reason.
        let _ = self.send(SwitchCommand::Stop);
        Some(thread.join().unwrap_or(Err(SwitchError::Gone)))
    }
}

impl Drop for SwitchHandle {
    fn drop(&mut self) {
        self.join();
    }
}
