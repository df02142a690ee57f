//! `weir studio`

mod controller;
mod enforcer;
mod scenario;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use weir_results::{Comparison, Ratio};
use weir_scenario::Setting;
use weir_studio::{Address, FinishedRun, ObservedKind, Script, StudioError};

use crate::arguments;
use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::output;
use crate::scenarios::ScenarioArguments;
use crate::sed::CertificateArguments;

/// The arguments of `weir studio`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir studio buffer-sharing                         a scenario that ships; prints the page's address
  weir studio my.toml --set seed=2 --open            a file of yours, in the browser at once
  weir studio migration --port 8080                  always the same port
  weir studio buffer-sharing-1g --variant 200Mbps    one of the variants that `weir check` lists
  weir studio results                                a directory that `weir run --out results` wrote, to look at
  weir studio simulated live                         two of them compared, as `weir compare` does
  weir studio --enforcer                             the enforcer of this machine: its flows and rules
  weir studio --controller ctl1                      a controller: flows with deadlines, the policy's stages

The page plays the scenario in virtual time: queues, windows and rates as they go, the network, and knobs for what
can change while it runs. Each change is an entry of a log; `Save as scenario` writes a file with which `weir run`
gives the same run, to the byte. `weir run --live FILE --studio` shows a live run. Only who has the printed address
may look. A page that is closed ends its run after ten seconds. Ctrl-C ends the studio.")]
pub(crate) struct Studio {
    /// Scenario file, or the name of a shipped one (`weir list`); or the directory of a finished run, or two
    #[arg(value_name = "FILE", num_args = 1..=2, required_unless_present_any = ["enforcer", "controller"])]
    files: Vec<PathBuf>,

    /// New value of a key of the scenario, by its path: `parameters.line_rate=5Gbps` (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Setting>,

    /// Policy file whose rules choose the congestion control of the groups that say what they stand for
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Play this variant instead of the file's own values
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

    /// With two finished runs: the difference up to which two means agree
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = arguments::percent)]
    within: Ratio,

    /// Look at a running enforcer, at its control socket
    #[arg(
        long,
        value_name = "SOCKET",
        num_args = 0..=1,
        default_missing_value = weir_enforce::operation::control::DEFAULT_PATH,
        conflicts_with_all = ["files", "controller"]
    )]
    enforcer: Option<PathBuf>,

    /// Look at a running controller
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1",
        conflicts_with = "files"
    )]
    controller: Option<String>,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// Port of the page, instead of any that is free
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,

    /// Address to listen at, instead of the loopback: then other machines can reach it, unencrypted
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), hide_default_value = true)]
    listen: IpAddr,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

/// What the page shows.
enum Shown {
    Scenario(Script),
    Finished(Box<FinishedRun>),
    Compared(String),
    Enforcer(PathBuf),
    Controller(Box<controller::Controller>),
}

impl Studio {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let shown = self.shown()?;
        if !self.listen.is_loopback() {
            eprintln!(
                "warning: {} is no loopback address: what the page shows is not encrypted",
                self.listen
            );
        }
        let stop = Stop::on_signals()?;
        let is_changed = matches!(shown, Shown::Scenario(_));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let served = runtime.block_on(self.serve(shown, &stop));
        // A question that nobody answers is not waited for.
        runtime.shutdown_background();
        served.map_err(Failure::of)?;
        match stop.signal_exit_code() {
            Some(code) => Err(Failure::Interrupted {
                message: if is_changed {
                    "the studio has ended; what was not saved is gone".to_owned()
                } else {
                    "the studio has ended".to_owned()
                },
                code,
            }),
            None => Ok(()),
        }
    }

    async fn serve(&self, shown: Shown, stop: &Stop) -> Result<(), StudioError> {
        let stopped = async {
            while !stop.should_stop() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let address = SocketAddr::new(self.listen, self.port);
        let ready = |address: &Address| self.announce(address);
        match shown {
            Shown::Scenario(script) => weir_studio::serve(script, address, ready, stopped).await,
            Shown::Finished(run) => weir_studio::show(*run, address, ready, stopped).await,
            Shown::Compared(page) => weir_studio::show_page(page, address, ready, stopped).await,
            Shown::Enforcer(socket) => {
                let about = (ObservedKind::Enforcer, socket.display().to_string());
                let ask = || enforcer::ask(socket.clone());
                weir_studio::observe(about, ask, address, ready, stopped).await
            }
            Shown::Controller(controller) => {
                let about = (ObservedKind::Controller, controller.name().to_owned());
                let ask = || controller.ask();
                weir_studio::observe(about, ask, address, ready, stopped).await
            }
        }
    }

    /// Returns what the page shows: an enforcer, a controller, finished runs if their directories are named, and else a
    /// scenario.
    fn shown(&self) -> Result<Shown, Failure> {
        if let Some(socket) = &self.enforcer {
            enforcer::status(socket).map_err(Failure::Failed)?;
            return Ok(Shown::Enforcer(socket.clone()));
        }
        if let Some(address) = &self.controller {
            let credentials = self.certificates.credentials("operator")?;
            let controller = controller::Controller::new(address, credentials);
            return Ok(Shown::Controller(Box::new(controller)));
        }
        let (first, second) = match self.files.as_slice() {
            [] => return Err(Failure::Usage("name a scenario".to_owned())),
            [first] => (first, None),
            [first, second, ..] => (first, Some(second)),
        };
        if let Some(second) = second {
            self.check_unchanged("two finished runs")?;
            let comparison = Comparison::read(first, second, self.within);
            let comparison = comparison.map_err(Failure::of)?;
            return Ok(Shown::Compared(comparison.to_html()));
        }
        if FinishedRun::is_at(first) {
            self.check_unchanged(&format!("{} is a finished run", first.display()))?;
            let run = FinishedRun::read(first).map_err(Failure::of)?;
            return Ok(Shown::Finished(Box::new(run)));
        }
        let chosen = ScenarioArguments::of(first.clone(), self.set.clone(), self.policy.clone());
        scenario::script(&chosen, self.variant.as_deref()).map(Shown::Scenario)
    }

    /// Refuses options that change a scenario.
    fn check_unchanged(&self, shown: &str) -> Result<(), Failure> {
        let options = [
            ("set", !self.set.is_empty()),
            ("policy", self.policy.is_some()),
            ("variant", self.variant.is_some()),
        ];
        match options.into_iter().find(|(_, is_used)| *is_used) {
            Some((option, _)) => Err(Failure::option(
                option,
                format!("{shown}, which cannot be changed"),
            )),
            None => Ok(()),
        }
    }

    /// Prints where the page is, and opens it if asked for.
    fn announce(&self, address: &Address) {
        // A reader that is gone has the page's address already, or does not want it.
        let _ = output::print(&format!("{}\n", address.url));
        if !self.open {
            return;
        }
        let opened = Command::new("xdg-open")
            .arg(&address.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = opened {
            eprintln!(
                "warning: no browser can be opened (xdg-open: {error}): open the address above"
            );
        }
    }
}
