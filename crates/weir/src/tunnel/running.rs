//! What a client and a server do while they run: signals, the control socket, metrics.

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_metrics::{Exporter, Registry};
use weir_tunnel::Status;
use weir_tunnel::control::Control;

use super::Common;
use crate::failure::Failure;
use crate::{interrupt, service_manager};

/// The sockets beside the tunnels, and the signals.
pub(super) struct Surroundings {
    control: Option<Control>,
    exporter: Option<Exporter>,
    registry: Option<Registry>,
    hangup: Signal,
}

impl Surroundings {
    pub(super) async fn new(common: &Common) -> Result<Self, Failure> {
        let control = common.control.as_deref().map(Control::listen).transpose();
        let (exporter, registry) = match common.metrics {
            None => (None, None),
            Some(address) => {
                let registry = Registry::new();
                let exporter = Exporter::bind(address, registry.clone()).await;
                (Some(exporter.map_err(Failure::of)?), Some(registry))
            }
        };
        Ok(Self {
            control: control.map_err(Failure::of)?,
            exporter,
            registry,
            hangup: signal(SignalKind::hangup()).map_err(Failure::of)?,
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

    /// Runs until SIGTERM, and then drains; meanwhile answers at the control socket, and reloads at SIGHUP.
    pub(super) async fn run(
        &mut self,
        work: impl Future<Output = ()>,
        drain: impl Future<Output = bool>,
        status: impl Fn() -> Status,
        mut reload: impl FnMut() -> String,
        ready: &str,
    ) -> Result<(), Failure> {
        let terminated = interrupt::terminated()?;
        let control = self.control.as_ref();
        let hangup = &mut self.hangup;
        let answering = async {
            match control {
                Some(control) => control.answer(status).await,
                None => std::future::pending().await,
            }
        };
        let reloading = async {
            while hangup.recv().await.is_some() {
                service_manager::reloading();
                service_manager::ready(&reload());
            }
            std::future::pending::<()>().await;
        };
        let beside = async { tokio::join!(answering, reloading) };
        let mut beside = std::pin::pin!(beside);
        service_manager::ready(ready);
        tokio::select! {
            () = terminated => {}
            () = work => {}
            _ = &mut beside => {}
        }
        service_manager::stopping();
        tokio::select! {
            drained = drain => if !drained {
                tracing::warn!("connections were open after --drain-limit");
            },
            _ = &mut beside => {}
        }
        Ok(())
    }
}
