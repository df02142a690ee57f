//! `weir perf server`

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tokio::sync::mpsc;
use weir_metrics::{Exporter, Registry};
use weir_traffic::throughput::{self, DEFAULT_PORT, Measurement, ServerEvent, ServerOptions};
use weir_traffic::tls::Identity;
use weir_units::Duration;

use crate::arguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::perf::report::Report;
use crate::perf::{PolicyArguments, shared_key, text};

/// The arguments of `weir perf server`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir perf server                       for clients on this machine
  weir perf server --bind 0.0.0.0        for clients on any machine that reaches this one
  weir perf server --one-off --json      for one test; its result as JSON
  weir perf server --metrics 9100        with http://127.0.0.1:9100/metrics
  QLOGDIR=logs weir perf server          with a qlog file for each DCQUIC connection
  weir perf server --key-file key        for dcudp clients with this key (openssl rand -hex 32)
  weir perf server --controller ctl1     dcquic by the policy of a controller: docs/controller.md

All transports use the same port: tcp and tcp-tls over TCP, dcquic and dcudp over UDP, and each test
is arranged over TCP. tcp is not encrypted, and neither is dcudp without --key-file. Without --certificate each start makes a new one, with a new fingerprint. After SIGTERM the running test goes on to its end, and others are refused; a second one ends the server at once.")]
pub(crate) struct Server {
    /// Address to listen on
    #[arg(long, short = 'B', default_value = "127.0.0.1", value_name = "ADDRESS")]
    bind: IpAddr,

    /// Port to listen on; 0 selects any free port
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    port: u16,

    /// Exit after one test, with exit code 1 if it failed
    #[arg(long, short = '1')]
    one_off: bool,

    /// Certificate chain, PEM or DER
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// The certificate's private key, PEM or DER
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Accept dcudp clients with this key only: 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArguments,

    /// Time between the intervals in a JSON report; 0 for the result alone
    #[arg(long, short, default_value = "1s", value_parser = arguments::seconds)]
    interval: Duration,

    /// Time limit for a client's next step, or its next byte
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = arguments::limit)]
    timeout: Duration,

    /// Serve DCQUIC's Prometheus metrics by HTTP at /metrics; a port alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = weir_metrics::parse_address)]
    metrics: Option<SocketAddr>,

    /// Print JSON, one document per line: first the listening address, then each test's result
    #[arg(long, short = 'J')]
    json: bool,
}

/// The first line of JSON.
#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
    fingerprint: String,
    /// The address of the metrics exporter.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddr>,
}

impl Server {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let terminated = if self.one_off {
            interrupt::end_on_signals()?;
            None
        } else {
            Some(interrupt::terminated()?)
        };
        let exporter = self.exporter().await?;
        let options = ServerOptions {
            bind: SocketAddr::new(self.bind, self.port),
            identity: self.identity()?,
            timeout: self.timeout,
            interval: self.interval,
            metrics: exporter.as_ref().map(|(_, registry)| registry.clone()),
            key: self.key_file.as_deref().map(shared_key).transpose()?,
            policy: self.policy.source()?,
        };
        let server = throughput::Server::bind(options)
            .await
            .map_err(Failure::of)?;
        let exporter = exporter.map(|(exporter, _)| exporter);
        self.announce(&server, exporter.as_ref().map(Exporter::local_address))?;
        // Events are printed concurrently with the tests, so that a closed output can end the server.
        let (sender, mut events) = mpsc::unbounded_channel();
        // The receiver outlives the server.
        let mut hear = move |event| drop(sender.send(event));
        let serve = async {
            match terminated {
                None => server.serve_one(&mut hear).await,
                Some(terminated) => {
                    server.serve_until(terminated, &mut hear).await;
                    Ok(())
                }
            }
        };
        tokio::pin!(serve);
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => self.print(&event)?,
                result = &mut serve => break result,
            }
        };
        while let Ok(event) = events.try_recv() {
            self.print(&event)?;
        }
        if let Some(exporter) = exporter {
            exporter.shutdown().await;
        }
        result.map_err(Failure::of)
    }

    async fn exporter(&self) -> Result<Option<(Exporter, Registry)>, Failure> {
        let Some(address) = self.metrics else {
            return Ok(None);
        };
        let registry = Registry::new();
        let exporter = Exporter::bind(address, registry.clone()).await;
        Ok(Some((exporter.map_err(Failure::of)?, registry)))
    }

    fn identity(&self) -> Result<Identity, Failure> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Identity::from_files(certificate, key),
            _ => Identity::self_signed(["weir-perf"]),
        };
        identity.map_err(Failure::of)
    }

    fn announce(
        &self,
        server: &throughput::Server,
        metrics: Option<SocketAddr>,
    ) -> Result<(), Failure> {
        let (address, fingerprint) = (server.address(), server.fingerprint());
        if self.json {
            return output::print_json_line(&Listening {
                listening: address,
                fingerprint: fingerprint.to_string(),
                metrics,
            });
        }
        let host = if address.ip().is_unspecified() {
            "HOST".to_owned()
        } else {
            address.ip().to_string()
        };
        let port = match address.port() {
            DEFAULT_PORT => String::new(),
            other => format!(" --port {other}"),
        };
        let metrics = metrics.map_or_else(String::new, |address| {
            format!("metrics at http://{address}/metrics\n")
        });
        output::print(&format!(
            "listening on {address}\nfingerprint {fingerprint}\n{metrics}\n\
             weir perf client {host}{port} --pin {fingerprint}\n\n"
        ))
    }

    fn print(&self, event: &ServerEvent) -> Result<(), Failure> {
        match event {
            ServerEvent::Began { client, parameters } => {
                tracing::info!("{client}: {}", text::summary(parameters));
                Ok(())
            }
            ServerEvent::Ended { measurement, .. } => self.print_report(measurement),
            ServerEvent::Failed { client, error } => {
                tracing::warn!("{client}: {error}");
                Ok(())
            }
        }
    }

    fn print_report(&self, measurement: &Measurement) -> Result<(), Failure> {
        let report = Report::new(measurement);
        if self.json {
            output::print_json_line(&report)
        } else {
            output::print(&text::end(&report))
        }
    }
}
