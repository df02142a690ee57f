//! `weir bench rpc`

mod plan;
mod remote;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use weir_congestion::AlgorithmSpec;
use weir_traffic::calls::paper::BASELINE;
use weir_traffic::calls::{Launcher, Placement, Progress, TransportSpecification, table};
use weir_traffic::tls::Fingerprint;
use weir_units::{ByteSize, Duration};

use super::worker::Worker;
use crate::arguments;
use crate::failure::Failure;
use crate::{interrupt, output};

/// The arguments of `weir bench rpc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir bench rpc                                       DCQUIC beside TCP+TLS, both on this machine
  weir bench rpc --transports dcquic,tcp-tls/bbr       TCP with another kernel congestion control
  weir bench rpc --congestion dctcp,g=0.125 --mps 8972 DCQUIC with DCTCP and jumbo packets
  weir bench rpc --json result.json

Between two machines:
  there$ weir bench rpc --server 0.0.0.0
  here$  weir bench rpc --connect there:9347 --pin 3f5a…

Client and server of each transport are processes of their own, and the transports take turns.
Latencies compare only at equal placement, because waking a sleeping core costs more than most of
what is measured: `one` puts both processes on one core, `two` on one core each, `free` leaves them
to the scheduler.")]
pub(crate) struct Rpc {
    /// Number of measurements of each case with each transport
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,

    /// Transports to compare: dcquic, tcp-tls and tcp, each with optional settings:
    /// `NAME[@PACKET][/CONGESTION][+fast-open]` [default: dcquic,tcp-tls, and tcp-tls+fast-open where
    /// net.ipv4.tcp_fastopen is 3]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    transports: Vec<TransportSpecification>,

    /// Sizes of the replies
    #[arg(long, value_delimiter = ',', default_value = "10KB,100KB", value_parser = arguments::size, value_name = "LIST")]
    sizes: Vec<ByteSize>,

    /// Congestion control of dcquic, one of `weir algorithms`
    #[arg(long, short = 'C', value_name = "NAME[,PARAMETER=VALUE]")]
    congestion: Option<AlgorithmSpec>,

    /// Largest UDP payload of dcquic, if the path supports it
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    mps: Option<ByteSize>,

    /// Placement of the processes: one, two, free
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    placement: Vec<Placement>,

    /// Measure dcquic with its low-latency setting too: it polls about 50 µs for a reply before it
    /// sleeps
    #[arg(long)]
    low_latency: bool,

    /// Write the results as JSON; with `-` to standard output, instead of the table
    #[arg(long, short = 'J', value_name = "FILE")]
    json: Option<PathBuf>,

    /// Be the server for a client on another machine; prints the arguments of the client
    #[arg(
        long,
        value_name = "ADDRESS[:PORT]",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1",
        value_parser = remote::listen_address,
        conflicts_with_all = ["iterations", "sizes", "placement", "json", "connect", "pin"],
    )]
    server: Option<std::net::SocketAddr>,

    /// Measure against a server on another machine
    #[arg(long, value_name = "HOST:PORT", requires = "pin")]
    connect: Option<String>,

    /// Fingerprint of that server's certificate, as the server prints it
    #[arg(long, value_name = "FINGERPRINT", requires = "connect")]
    pin: Option<Fingerprint>,

    /// Time limit of connecting and of each single step
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = arguments::limit)]
    timeout: Duration,
}

impl Rpc {
    pub(super) fn run(&self) -> Result<(), Failure> {
        interrupt::end_on_signals()?;
        let transports = self.transports()?;
        if let Some(bind) = self.server {
            return remote::serve(&transports, bind);
        }
        let plan = self.plan(transports)?;
        let launcher = Launcher::this_program(&Worker::ARGUMENTS).map_err(Failure::of)?;
        let bar = progress_bar();
        let report = weir_traffic::calls::run(
            &plan,
            &weir_traffic::calls::standard_drivers(),
            &launcher,
            &mut |progress| show(&bar, progress),
        );
        bar.finish_and_clear();
        let report = report.map_err(Failure::of)?;
        let to_stdout = self.json.as_deref() == Some(Path::new("-"));
        match &self.json {
            Some(_) if to_stdout => output::print_json(&report)?,
            Some(path) => write_json(path, &report)?,
            None => {}
        }
        if !to_stdout {
            let mut text = table::render(&report, &[BASELINE.to_owned()]);
            if let Some(why) = self.missing_rival() {
                text.push_str(&format!("not measured: tcp-tls+fast-open. {why}\n"));
            }
            output::print(&text)?;
        }
        match report.failures.len() {
            0 => Ok(()),
            count => Err(Failure::Failed(format!(
                "{count} of the measurements could not be made: see the results"
            ))),
        }
    }
}

fn write_json(path: &Path, report: &weir_traffic::calls::Report) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("--json: cannot write {}: {error}", path.display()))
    };
    let mut text = serde_json::to_string_pretty(report).map_err(|error| failed(&error))?;
    text.push('\n');
    fs::write(path, text).map_err(|error| failed(&error))
}

/// Returns a progress bar, which is visible only if standard error is a terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len}  {elapsed}  {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(StdDuration::from_millis(250));
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
    bar.set_message(progress.now.clone());
}
