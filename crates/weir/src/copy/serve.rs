//! `weir copy serve`

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tokio::sync::mpsc;
use weir_copy::{DEFAULT_PORT, Event, Server, ServerOptions, ServerSecurity};
use weir_traffic::tls::Identity;
use weir_units::ByteSize;

use super::{CopyTransport, key, refuse_option};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir copy serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir copy serve /srv/in                            for clients on this machine
  weir copy serve /srv/in --bind 0.0.0.0             for clients on any machine that reaches this one
  weir copy serve /srv/in --certificate c.pem --key k.pem    with the same fingerprint at each start
  weir copy serve /srv/in --transport dcudp --key-file key   for clients with this key alone

Over dcquic the client verifies the server, but the server takes files from every client that reaches
its port: bind it where only yours do, or use dcudp with a key. Without --certificate each start makes
a new one, with a new fingerprint.")]
pub(crate) struct Serve {
    /// Directory that receives the files
    directory: PathBuf,

    /// Address to listen on
    #[arg(long, short = 'B', default_value = "127.0.0.1", value_name = "ADDRESS")]
    bind: IpAddr,

    /// UDP port to listen on; 0 selects any free port
    #[arg(long, short, default_value_t = DEFAULT_PORT)]
    port: u16,

    /// Transport: dcquic or dcudp
    #[arg(long, default_value_t = CopyTransport::Dcquic)]
    transport: CopyTransport,

    /// dcquic: certificate chain, PEM or DER
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// dcquic: the certificate's private key, PEM or DER
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// dcudp: file with the key of all clients, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Print JSON, one document per line: first the listening address, then each file
    #[arg(long, short = 'J')]
    json: bool,
}

/// The first line of JSON.
#[derive(Serialize)]
struct Listening {
    listening: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

/// The line of JSON of a file.
#[derive(Serialize)]
struct Received {
    received: String,
    client: SocketAddr,
    bytes: u64,
    /// Whether it was there already.
    kept: bool,
}

impl Serve {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let server = Server::bind(ServerOptions {
            directory: self.directory.clone(),
            bind: SocketAddr::new(self.bind, self.port),
            security: self.security()?,
        });
        let server = server.map_err(Failure::of)?;
        self.announce(&server)?;
        let (sender, mut events) = mpsc::unbounded_channel();
        let serve = server.run(sender);
        tokio::pin!(serve);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => self.print(event)?,
                () = &mut serve => return Err(Failure::of("the socket has shut down")),
            }
        }
    }

    fn security(&self) -> Result<ServerSecurity, Failure> {
        match self.transport {
            CopyTransport::Dcquic => {
                refuse_option(self.key_file.is_some(), "key-file", CopyTransport::Dcudp)?;
                let identity = match (&self.certificate, &self.key) {
                    (Some(certificate), Some(key)) => Identity::from_files(certificate, key),
                    _ => Identity::self_signed(["weir-copy"]),
                };
                Ok(ServerSecurity::Dcquic(identity.map_err(Failure::of)?))
            }
            CopyTransport::Dcudp => {
                let is_given = self.certificate.is_some();
                refuse_option(is_given, "certificate", CopyTransport::Dcquic)?;
                Ok(ServerSecurity::Dcudp(key(self.key_file.as_deref())?))
            }
        }
    }

    fn announce(&self, server: &Server) -> Result<(), Failure> {
        let (address, fingerprint) = (server.local_address(), server.fingerprint());
        if self.json {
            return output::print_json_line(&Listening {
                listening: address,
                fingerprint: fingerprint.map(|fingerprint| fingerprint.to_string()),
            });
        }
        let host = if address.ip().is_unspecified() {
            "HOST".to_owned()
        } else if address.is_ipv6() {
            format!("[{}]", address.ip())
        } else {
            address.ip().to_string()
        };
        let port = match address.port() {
            DEFAULT_PORT => String::new(),
            other => format!(" --port {other}"),
        };
        let security = fingerprint.map_or_else(
            || " --transport dcudp --key-file FILE".to_owned(),
            |fingerprint| format!(" --pin {fingerprint}"),
        );
        output::print(&format!(
            "listening on {address}\n\nweir copy FILE… {host}:{port}{security}\n\n"
        ))
    }

    fn print(&self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Received {
                client,
                path,
                size,
                kept,
            } => {
                if self.json {
                    return output::print_json_line(&Received {
                        received: path.to_string(),
                        client,
                        bytes: size,
                        kept,
                    });
                }
                let how = if kept { "was there" } else { "received" };
                let size = ByteSize::from_bytes(size);
                output::print(&format!("{client}: {path}, {size}, {how}\n"))
            }
            Event::Failed { client, error } => {
                eprintln!("warning: {client}: {error}");
                Ok(())
            }
        }
    }
}
