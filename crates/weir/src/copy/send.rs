//! The client of `weir copy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::net::lookup_host;
use weir_copy::{
    Client, ClientOptions, ClientSecurity, DEFAULT_PORT, Outcome, Progress, RelativePath,
    SourceFile, Sources, collect,
};
use weir_traffic::tls::Fingerprint;
use weir_units::{ByteSize, Duration};

use super::{CopyTransport, key, refuse_option};
use crate::arguments;
use crate::failure::Failure;
use crate::output;

/// The arguments of the client.
#[derive(Debug, Args)]
pub(super) struct Send {
    /// Files and directories, and at the end the server with a directory below the one that it serves:
    /// HOST:DIR, or HOST: for that itself
    #[arg(value_name = "FILE… HOST:DIR", required = true, num_args = 2..)]
    names: Vec<PathBuf>,

    /// The server's UDP port
    #[arg(long, short, default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,

    /// Transport: dcquic or dcudp
    #[arg(long, default_value_t = CopyTransport::Dcquic)]
    transport: CopyTransport,

    /// dcquic: fingerprint of the server's certificate, as the server prints it
    #[arg(long, value_name = "FINGERPRINT")]
    pin: Option<Fingerprint>,

    /// dcudp: file with the key shared with the server, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Time limit for the server's first answer
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = arguments::limit)]
    timeout: Duration,

    /// Print JSON, one document per line for each file
    #[arg(long, short = 'J')]
    json: bool,
}

/// The line of JSON of a file.
#[derive(Serialize)]
struct Copied {
    file: String,
    bytes: u64,
    /// The bytes that were not there already.
    sent: u64,
    seconds: f64,
    sha256: String,
}

/// The server as the user names it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    directory: RelativePath,
}

impl Send {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (target, names) = self.names.split_last().unwrap_or((&self.names[0], &[]));
        let target = target.to_str().ok_or("it is not UTF-8".to_owned());
        let target = target.and_then(Target::parse).map_err(Failure::Usage)?;
        let security = self.security()?;
        let sources = collect(names).map_err(Failure::of)?;
        for skipped in &sources.skipped {
            eprintln!(
                "warning: {} is left out: it is a link or a special file",
                skipped.display()
            );
        }
        let options = ClientOptions {
            server: self.resolve(&target.host).await?,
            directory: target.directory,
            security,
            timeout: self.timeout,
        };
        let bar = bar(&sources);
        let copied = self.copy_all(&options, &sources, &bar).await;
        bar.finish_and_clear();
        copied
    }

    async fn copy_all(
        &self,
        options: &ClientOptions,
        sources: &Sources,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let mut client = Client::connect(options).await.map_err(Failure::of)?;
        let mut before = 0;
        for file in &sources.files {
            let began = Instant::now();
            bar.set_prefix(file.remote.to_string());
            let copied = client
                .copy(file, |progress| match progress {
                    Progress::Compared(at) => {
                        bar.set_message("comparing");
                        bar.set_position(before + at);
                    }
                    Progress::Sent(at) => {
                        bar.set_message("");
                        bar.set_position(before + at);
                    }
                })
                .await;
            let outcome = copied.map_err(Failure::of)?;
            before += file.size;
            bar.set_position(before);
            bar.suspend(|| self.print(file, &outcome, began.elapsed().into()))?;
        }
        client.close().await;
        Ok(())
    }

    fn print(&self, file: &SourceFile, outcome: &Outcome, took: Duration) -> Result<(), Failure> {
        let seconds = took.as_secs_f64();
        if self.json {
            return output::print_json_line(&Copied {
                file: file.remote.to_string(),
                bytes: file.size,
                sent: outcome.sent,
                seconds,
                sha256: outcome.digest.to_string(),
            });
        }
        let rate = outcome.sent as f64 / 1e6 / seconds.max(1e-9);
        let there = match file.size - outcome.sent {
            0 => String::new(),
            there => format!(", {} were there already", ByteSize::from_bytes(there)),
        };
        output::print(&format!(
            "{}  {}  {} in {seconds:.1} s, {rate:.1} MB/s{there}\n",
            outcome.digest,
            file.remote,
            ByteSize::from_bytes(file.size),
        ))
    }

    fn security(&self) -> Result<ClientSecurity, Failure> {
        match self.transport {
            CopyTransport::Dcquic => {
                refuse_option(self.key_file.is_some(), "key-file", CopyTransport::Dcudp)?;
                let missing = "dcquic needs the fingerprint that `weir copy serve` prints";
                let pin = self.pin.ok_or_else(|| Failure::option("pin", missing))?;
                Ok(ClientSecurity::Dcquic(pin))
            }
            CopyTransport::Dcudp => {
                refuse_option(self.pin.is_some(), "pin", CopyTransport::Dcquic)?;
                Ok(ClientSecurity::Dcudp(key(self.key_file.as_deref())?))
            }
        }
    }

    async fn resolve(&self, host: &str) -> Result<SocketAddr, Failure> {
        let found = lookup_host((host, self.port)).await;
        let mut found =
            found.map_err(|error| Failure::of(format!("cannot find `{host}`: {error}")))?;
        let none = || Failure::of(format!("`{host}` has no address"));
        found.next().ok_or_else(none)
    }
}

/// Returns the bar of all files together; indicatif hides it where standard error is no terminal.
fn bar(sources: &Sources) -> ProgressBar {
    let bar = ProgressBar::new(sources.size().bytes());
    let style = ProgressStyle::with_template(
        "{bar:24} {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left  {prefix} {msg}",
    );
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Target {
    /// Parses `HOST:DIR`; an IPv6 address is in brackets.
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` names no server: the last argument is HOST:DIR, or HOST: for the directory \
                 that is served"
            )
        };
        let bracketed = text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]:"));
        let (host, directory) = bracketed
            .or_else(|| text.split_once(':'))
            .filter(|(host, _)| !host.is_empty() && !host.contains(['[', ']', '/']))
            .ok_or_else(wrong)?;
        Ok(Self {
            host: host.to_owned(),
            directory: RelativePath::parse(directory).map_err(|error| error.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_and_a_directory_below_the_served_one() {
        let target = |text| {
            let target = Target::parse(text).unwrap();
            (target.host, target.directory.to_string())
        };
        let expected = |host: &str, directory: &str| (host.to_owned(), directory.to_owned());
        assert_eq!(target("10.0.0.2:"), expected("10.0.0.2", "."));
        assert_eq!(target("host:a/b/"), expected("host", "a/b"));
        assert_eq!(target("[::1]:a"), expected("::1", "a"));
        assert_eq!(target("host:a:b"), expected("host", "a:b"));
        for wrong in ["host", ":a", "./a:b", "[::1]", "[]:x"] {
            let error = Target::parse(wrong).unwrap_err();
            assert!(error.contains("HOST:DIR"), "{wrong}: {error}");
        }
        let up = Target::parse("host:../x").unwrap_err();
        assert!(up.contains("would leave"), "{up}");
        let absolute = Target::parse("host:/etc").unwrap_err();
        assert!(absolute.contains("absolute"), "{absolute}");
    }
}
