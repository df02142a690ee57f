//! The page on which a live run is looked at while it goes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use weir_scenario::Scenario;
use weir_studio::{Address, LiveRun};

use crate::failure::Failure;
use crate::interrupt::Stop;

/// A page that is served until the program ends.
pub(super) struct Page(LiveRun);

impl Page {
    /// Serves the page of a run at a port of the loopback, 0 for any, and prints its address.
    pub(super) fn open(port: u16, name: &str, scenario: &Scenario) -> Result<Self, Failure> {
        let run = LiveRun::new(name, scenario);
        let shown = run.clone();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (ready, is_ready) = channel();
        let serve = move || {
            let announced = ready.clone();
            let announce = |address: &Address| {
                // Who waits for it is there.
                let _ = announced.send(Ok(address.url.clone()));
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let served = runtime.map_err(Failure::of).and_then(|runtime| {
                let page = weir_studio::show_live(shown, address, announce, std::future::pending());
                runtime.block_on(page).map_err(Failure::of)
            });
            if let Err(failure) = served {
                // It is waited for until the page is there; without it the run goes on.
                let _ = ready.send(Err(failure));
            }
        };
        thread::Builder::new()
            .name("page".to_owned())
            .spawn(serve)
            .map_err(Failure::of)?;
        let url = is_ready.recv().map_err(Failure::of)??;
        eprintln!("the run's page: {url}");
        Ok(Self(run))
    }

    pub(super) fn run(&self) -> &LiveRun {
        &self.0
    }

    /// Serves the page of the finished run until a signal. After one that has stopped the run, the next one ends the
    /// program.
    pub(super) fn wait(self, stop: &Stop) {
        let is_stopped = stop.should_stop();
        eprintln!("the page shows the finished run until Ctrl-C");
        while is_stopped || !stop.should_stop() {
            thread::sleep(Duration::from_millis(50));
        }
    }
}
