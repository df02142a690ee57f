//! `weir perf client`

use std::path::PathBuf;

use clap::Args;
use tokio::sync::mpsc;
use weir_traffic::throughput::{
    self, ClientOptions, DEFAULT_PORT, Direction, Error, Event, Extent, Parameters, Profile, Side,
    Transport,
};
use weir_traffic::tls::Fingerprint;
use weir_units::{ByteSize, Duration, Rate};

use crate::arguments;
use crate::failure::Failure;
use crate::output;
use crate::perf::report::{Interval, Report, Start};
use crate::perf::{PolicyArguments, shared_key, text};

/// The arguments of `weir perf client`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir perf client 10.0.0.2 --pin 3f5a…                  DCQUIC, 10 seconds, to the server
  weir perf client 10.0.0.2 --transport tcp --reverse    plain TCP, from the server
  weir perf client 10.0.0.2 --pin 3f5a… --mps 8972 --congestion dctcp,g=0.125 --parallel 4
  weir perf client 10.0.0.2 --pin 3f5a… --bytes 10GB --json > result.json
  weir perf client 10.0.0.2 --transport dcudp                 NOT encrypted, and no pin
  weir perf client 10.0.0.2 --transport dcudp --profile data-center --rate 9Gbps
  weir perf client 10.0.0.2 --transport dcudp --key-file key  sealed with a key both ends have

`weir perf server` prints the fingerprint to pin; `weir algorithms` lists what --congestion takes.
In the table, `lost` is what TCP or DCUDP retransmitted, or the packets that DCQUIC lost; `CE` counts
packets that arrived with a congestion mark. DCUDP shows its rate in the window's place. Only the
sending side knows these and the round-trip time.")]
pub(crate) struct Client {
    /// Name or address of the machine where `weir perf server` runs
    host: String,

    /// The server's port
    #[arg(long, short, default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Transport of the data: dcquic, dcudp, tcp or tcp-tls
    #[arg(long, default_value_t = Transport::Dcquic)]
    transport: Transport,

    /// Fingerprint of the server's certificate, as the server prints it (not for tcp and dcudp,
    /// which have none)
    #[arg(long, value_name = "FINGERPRINT")]
    pin: Option<Fingerprint>,

    /// The sender's congestion control: for dcquic and dcudp one of `weir algorithms`, for tcp and
    /// tcp-tls one of the kernel's
    #[arg(long, short = 'C', value_name = "NAME[,PARAMETER=VALUE]", conflicts_with_all = ["policy", "controller"])]
    congestion: Option<String>,

    /// Number of parallel connections
    #[arg(long, short = 'P', default_value_t = 1, value_name = "N")]
    parallel: u16,

    /// Duration of the test
    #[arg(long, short, default_value = "10s", value_parser = arguments::seconds)]
    time: Duration,

    /// Amount of data to send, instead of --time
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = arguments::size, conflicts_with = "time")]
    bytes: Option<ByteSize>,

    /// The server sends, and the client receives
    #[arg(long, short = 'R')]
    reverse: bool,

    /// dcudp: how the sender finds its rate: `shared` upwards from ten packets per round trip, as TCP
    /// does; `data-center` sends at --rate until switches mark, and floods a network that does not
    /// [default: shared]
    #[arg(long, value_name = "NAME")]
    profile: Option<Profile>,

    /// dcudp: highest rate, in UDP payload [default: the interface's; data-center: 10Gbps]
    #[arg(long)]
    rate: Option<Rate>,

    /// dcudp, data-center: losses that go on for two round trips are congestion too
    #[arg(long)]
    congestion_on_loss: bool,

    /// dcudp: file with the key shared with the server, 64 hexadecimal digits; without one nothing
    /// is encrypted or authenticated
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArguments,

    /// Largest packet: the UDP payload for dcquic and dcudp, the segment for tcp and tcp-tls
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    mps: Option<ByteSize>,

    /// Interval of the reports; 0 for the result alone
    #[arg(long, short, default_value = "1s", value_parser = arguments::seconds)]
    interval: Duration,

    /// Time limit for a connection, an answer, or the next byte
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = arguments::limit)]
    timeout: Duration,

    /// Print one JSON document at the end, in iperf3's format
    #[arg(long, short = 'J')]
    json: bool,
}

impl Client {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let options = self.options().await?;
        // Events are printed concurrently with the test, so that a closed output can end it.
        let (lines, mut heard) = mpsc::unbounded_channel();
        let sends = Side::Client.sends(&options.parameters);
        let mut hear = |event: Event<'_>| {
            let line = match event {
                Event::Start(start) => text::start(&Start::new(start)),
                Event::Interval(interval) => text::interval(&Interval::new(interval, sends)),
            };
            // The receiver outlives the test.
            let _ = lines.send(line);
        };
        let test = throughput::run(&options, &mut hear);
        tokio::pin!(test);
        let measurement = loop {
            tokio::select! {
                biased;
                Some(line) = heard.recv() => self.print(&line)?,
                ended = &mut test => break ended.map_err(|error| self.failure(error))?,
            }
        };
        let report = Report::new(&measurement);
        if let Some(warning) = text::warning(&report) {
            eprintln!("warning: {warning}");
        }
        if self.json {
            return output::print_json(&report);
        }
        while let Ok(line) = heard.try_recv() {
            self.print(&line)?;
        }
        output::print(&text::end(&report))
    }

    /// Prints a line. With JSON, only the final document is printed.
    fn print(&self, line: &str) -> Result<(), Failure> {
        if self.json {
            Ok(())
        } else {
            output::print(line)
        }
    }

    async fn options(&self) -> Result<ClientOptions, Failure> {
        let parameters = Parameters {
            transport: self.transport,
            direction: if self.reverse {
                Direction::Download
            } else {
                Direction::Upload
            },
            extent: self.bytes.map_or(Extent::Time(self.time), Extent::Bytes),
            parallel: self.parallel,
            congestion: self.congestion.clone(),
            packet_size: self.mps,
            profile: self.profile,
            rate: self.rate,
            congestion_on_loss: self.congestion_on_loss,
            keyed: self.key_file.is_some(),
        };
        self.check(&parameters)?;
        let key = self.key_file.as_deref().map(shared_key).transpose()?;
        Ok(ClientOptions {
            host: self.host.clone(),
            port: self.port,
            pin: self.pin,
            key,
            policy: self.policy.first().await?,
            parameters,
            interval: self.interval,
            timeout: self.timeout,
        })
    }

    fn check(&self, parameters: &Parameters) -> Result<(), Failure> {
        match (self.transport.is_secure(), self.pin) {
            (true, None) => {
                let problem = format!(
                    "{} needs the fingerprint that `weir perf server` prints",
                    self.transport
                );
                return Err(Failure::option("pin", problem));
            }
            (false, Some(_)) => {
                let problem = format!(
                    "{} shows no certificate: choose tcp-tls or dcquic, or leave it out",
                    self.transport
                );
                return Err(Failure::option("pin", problem));
            }
            _ => {}
        }
        if let Some(option) = self.policy.option()
            && self.transport != Transport::Dcquic
        {
            let problem = format!(
                "it is for dcquic: `weir enforce` controls TCP by a policy, and {} has --congestion",
                self.transport
            );
            return Err(Failure::option(option, problem));
        }
        // The receiver's kernel may not have the sender's congestion control.
        let mut ours = parameters.clone();
        if self.reverse && self.transport.uses_kernel_tcp() {
            ours.congestion = None;
        }
        ours.validate().map_err(|error| self.failure(error))
    }

    fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Parameter { name, problem } => Failure::option(name, problem),
            Error::TimedOut { .. } | Error::Stalled(_) | Error::NoAnswer { .. } => {
                Failure::Failed(format!("{error} (--timeout sets how long to wait)"))
            }
            error => Failure::of(error),
        }
    }
}
