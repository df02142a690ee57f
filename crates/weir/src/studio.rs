//! `weir studio`

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Args;
use weir_studio::{Address, FinishedRun, Script};

use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::output;
use crate::scenarios::{self, ScenarioArguments};

/// The arguments of `weir studio`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir studio buffer-sharing                         a scenario that ships; prints the page's address
  weir studio my.toml --set seed=2 --open            a file of yours, in the browser at once
  weir studio migration --port 8080                  always the same port
  weir studio buffer-sharing-1g --variant 200Mbps    one of the variants that `weir check` lists
  weir studio results                                a directory that `weir run --out results` wrote, to look at

The page plays the scenario in virtual time: queues, windows and rates as they go, the network, and knobs for what
can change while it runs. Each change is an entry of a log; `Save as scenario` writes a file with which `weir run`
gives the same run, to the byte. Only who has the printed address may look. A page that is closed ends its run after
ten seconds. Ctrl-C ends the studio.")]
pub(crate) struct Studio {
    #[command(flatten)]
    chosen: ScenarioArguments,

    /// Play this variant instead of the file's own values
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

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
        let stopped = {
            let stop = stop.clone();
            async move {
                while !stop.should_stop() {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        };
        let address = SocketAddr::new(self.listen, self.port);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(Failure::of)?;
        let ready = |address: &Address| self.announce(address);
        let served = match shown {
            Shown::Scenario(script) => {
                runtime.block_on(weir_studio::serve(script, address, ready, stopped))
            }
            Shown::Finished(run) => {
                runtime.block_on(weir_studio::show(*run, address, ready, stopped))
            }
        };
        served.map_err(Failure::of)?;
        match stop.signal_exit_code() {
            Some(code) => Err(Failure::Interrupted {
                message: "the studio has ended; what was not saved is gone".to_owned(),
                code,
            }),
            None => Ok(()),
        }
    }

    /// Returns what the page shows: a finished run if its directory is named, and else a scenario.
    fn shown(&self) -> Result<Shown, Failure> {
        let name = self.chosen.name();
        let directory = Path::new(&name);
        if !FinishedRun::is_at(directory) {
            return self.script().map(Shown::Scenario);
        }
        let is_changed = !self.chosen.settings(None).is_empty() || self.chosen.has_policy();
        if is_changed || self.variant.is_some() {
            let reason = format!("{name} is a finished run, which cannot be changed");
            let option = if is_changed { "set" } else { "variant" };
            return Err(Failure::option(option, reason));
        }
        let run = FinishedRun::read(directory).map_err(Failure::of)?;
        Ok(Shown::Finished(Box::new(run)))
    }

    /// Returns the scenario, checked, as the file has it where nothing else is asked for.
    fn script(&self) -> Result<Script, Failure> {
        let settings = self.chosen.settings(None);
        let loaded = self.chosen.load(&settings);
        let loaded = loaded.map_err(|error| self.chosen.failure(&error))?;
        let (mut loaded, _) = self.chosen.under_policy(loaded)?;
        let name = self.chosen.name();
        let is_file = settings.is_empty() && self.variant.is_none() && !self.chosen.has_policy();
        if let Some(wanted) = &self.variant {
            let names: Vec<_> = loaded
                .variants
                .iter()
                .map(|variant| variant.name.clone())
                .collect();
            let place = names.iter().position(|name| name == wanted);
            let place = place.ok_or_else(|| {
                let known = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                Failure::option(
                    "variant",
                    format!("there is no variant `{wanted}`; the file has: {known}"),
                )
            })?;
            loaded.scenario = loaded.variants.swap_remove(place).scenario;
        }
        loaded.variants.clear();
        scenarios::check_simulation(&loaded)?;
        if is_file {
            let text = self
                .chosen
                .text()
                .map_err(|error| self.chosen.failure(&error))?;
            return Ok(Script::of_file(&name, &text));
        }
        Script::of_scenario(&name, &loaded.scenario).map_err(Failure::of)
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
