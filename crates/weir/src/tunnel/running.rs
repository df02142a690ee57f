//! What a client and a server do while they run: signals, the control socket, metrics, a successor.

use std::cell::Cell;

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_metrics::{Exporter, Registry};
use weir_tunnel::control::{Control, Controlled};
use weir_tunnel::handover::Inheritance;

use super::Common;
use crate::failure::Failure;
use crate::{interrupt, service_manager};

/// A client or a server.
pub(super) trait Process: Controlled {
    /// Accepts connections, without an end.
    async fn work(&self);

    /// Accepts no more, and waits for the end of those that are open; returns whether all have ended in time.
    async fn drain(&self) -> bool;

    /// Reads files again; returns what the service manager is told.
    fn reload(&self) -> String;
}

/// The sockets beside the tunnels, and the signals.
pub(super) struct Surroundings {
    control: Option<Control>,
    exporter: Option<Exporter>,
    registry: Option<Registry>,
    hangup: Signal,
    inheritance: Option<Inheritance>,
}

impl Surroundings {
    pub(super) async fn new(common: &Common) -> Result<Self, Failure> {
        let (control, inheritance) = control(common)?;
        let (exporter, registry) = match common.metrics {
            None => (None, None),
            Some(address) => {
                let registry = Registry::new();
                let exporter = Exporter::bind(address, registry.clone()).await;
                (Some(exporter.map_err(Failure::of)?), Some(registry))
            }
        };
        Ok(Self {
            control,
            exporter,
            registry,
            hangup: signal(SignalKind::hangup()).map_err(Failure::of)?,
            inheritance,
        })
    }

    /// Returns where metrics are registered, if anybody may read them.
    pub(super) fn registry(&self) -> Option<Registry> {
        self.registry.clone()
    }

    /// Returns the address of the metrics.
    pub(super) fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.exporter.as_ref().map(Exporter::local_address)
    }

    /// Returns what this process has from its predecessor.
    pub(super) fn inheritance(&mut self) -> Option<&mut Inheritance> {
        self.inheritance.as_mut()
    }

    /// Runs until SIGTERM or until a successor listens, and then drains; meanwhile answers at the control
    /// socket, and reloads at SIGHUP.
    pub(super) async fn run(&mut self, process: &impl Process, ready: &str) -> Result<(), Failure> {
        let terminated = interrupt::terminated()?;
        let succeeded = match self.inheritance.take() {
            Some(inheritance) => Some(inheritance.begin().map_err(Failure::of)?),
            None => None,
        };
        let control = self.control.as_ref();
        if let (Some(control), Some(_)) = (control, &succeeded) {
            control.own();
        }
        let is_followed = Cell::new(false);
        let answering = async {
            match control {
                Some(control) => control.answer(process).await,
                None => std::future::pending().await,
            }
        };
        let hangup = &mut self.hangup;
        let reloading = async {
            while hangup.recv().await.is_some() {
                service_manager::reloading();
                service_manager::ready(&process.reload());
            }
        };
        let succeeding = async {
            if let Some(ended) = succeeded {
                service_manager::succeeds();
                ended.await;
                process.keep();
            }
        };
        let beside = async { tokio::join!(reloading, succeeding) };
        let (mut answering, mut beside) = (std::pin::pin!(answering), std::pin::pin!(beside));
        service_manager::ready(ready);
        tokio::select! {
            () = terminated => service_manager::stopping(),
            () = process.work() => service_manager::stopping(),
            successor = &mut answering => {
                is_followed.set(true);
                // The system closes it with the sockets of this process, and the successor knows by that.
                std::mem::forget(successor);
            }
            _ = &mut beside => {}
        }
        let answering = async {
            if !is_followed.get() {
                answering.await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            drained = process.drain() => if !drained {
                tracing::warn!("connections were open after --drain-limit");
            },
            () = answering => {}
            _ = &mut beside => {}
        }
        Ok(())
    }
}

/// Listens at the control socket, or has it from a predecessor.
fn control(common: &Common) -> Result<(Option<Control>, Option<Inheritance>), Failure> {
    let Some(path) = common.control.as_deref() else {
        return Ok((None, None));
    };
    if common.take_over
        && let Some(mut inheritance) = Inheritance::take_over(path).map_err(Failure::of)?
        && let Some((path, socket)) = inheritance.control()
    {
        let control = Control::inherit(path, socket).map_err(Failure::of)?;
        return Ok((Some(control), Some(inheritance)));
    }
    let control = Control::listen(path).map_err(Failure::of)?;
    Ok((Some(control), None))
}
