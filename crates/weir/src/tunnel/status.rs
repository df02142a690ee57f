//! `weir tunnel status`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir_tunnel::control::ask;
use weir_tunnel::{PeerStatus, Status as Found, TunnelValues};
use weir_units::ByteSize;

use crate::failure::Failure;
use crate::{interrupt, output};

/// The arguments of `weir tunnel status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir tunnel status /run/weir/tunnel.sock            of the process with --control /run/weir/tunnel.sock
  weir tunnel status /run/weir/tunnel.sock --watch    again every second
  weir tunnel status /run/weir/tunnel.sock --json     for programs")]
pub(crate) struct Status {
    /// Control socket of the client or server
    #[arg(value_name = "SOCKET")]
    control: PathBuf,

    /// Refresh every second, until Ctrl-C
    #[arg(long, short)]
    watch: bool,

    /// Print JSON; with --watch one document per line
    #[arg(long, short = 'J')]
    json: bool,
}

impl Status {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if !self.watch {
            return self.show();
        }
        interrupt::end_on_signals()?;
        loop {
            if !self.json {
                // Move to the top left, and clear the screen below.
                output::print("\x1b[H\x1b[J")?;
            }
            self.show()?;
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn show(&self) -> Result<(), Failure> {
        let found = ask(&self.control).map_err(Failure::of)?;
        match (self.json, self.watch) {
            (true, true) => output::print_json_line(&found),
            (true, false) => output::print_json(&found),
            (false, _) => output::print(&text(&found)),
        }
    }
}

fn text(found: &Found) -> String {
    let mut text = String::new();
    if let Some(address) = found.server {
        let _ = writeln!(text, "server on {address}");
    }
    for peer in &found.peers {
        peer_text(&mut text, peer);
    }
    if found.tunnels.is_empty() {
        text.push_str("no connections yet\n");
        return text;
    }
    let _ = writeln!(
        text,
        "{:<48} {:>8} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "tunnel", "open", "by DCQUIC", "by TLS", "sent", "received", "refused", "lost"
    );
    for tunnel in &found.tunnels {
        tunnel_text(&mut text, tunnel);
    }
    text
}

fn peer_text(text: &mut String, peer: &PeerStatus) {
    let way = if peer.falls_back {
        "by TLS over TCP, as DCQUIC fails"
    } else {
        "by DCQUIC"
    };
    let _ = writeln!(text, "{} {way}", peer.server);
    for connection in &peer.connections {
        let rtt = connection.rtt_us;
        let rtt = rtt.map_or_else(String::new, |rtt| format!(", RTT {:.3} ms", rtt / 1e3));
        let known = if connection.known_peer {
            ", without a handshake"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "    {} {}, {} streams{rtt}{known}",
            connection.server, connection.state, connection.streams
        );
    }
}

fn tunnel_text(text: &mut String, tunnel: &TunnelValues) {
    let size = |bytes| ByteSize::from_bytes(bytes).to_string();
    let _ = writeln!(
        text,
        "{:<48} {:>8} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8}",
        tunnel.tunnel,
        tunnel.open,
        tunnel.dcquic,
        tunnel.tls,
        size(tunnel.sent),
        size(tunnel.received),
        tunnel.refused.values().sum::<u64>(),
        tunnel.lost
    );
    for (reason, count) in &tunnel.refused {
        let _ = writeln!(text, "    {} {count}", reason.replace('_', " "));
    }
}
