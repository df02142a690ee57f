//! The server: tower-http's `ServeDir`, which knows ranges, content types and paths.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tower_http::services::ServeDir;
use weir_h3::HttpsServer;
use weir_net::Duration;
use weir_net::tls::ServerTls;

use super::Failure;
use super::certificate::Certificate;

/// How long running requests may take when the server drains.
const DRAIN: Duration = Duration::from_secs(10);
/// How much of a file is read at once; a slow client holds no more in memory than a few of these.
const CHUNK: usize = 64 * 1024;

#[derive(Args)]
pub(crate) struct Options {
    /// The directory whose files are served
    directory: PathBuf,
    /// The server's address, for UDP and TCP
    #[arg(long = "at", default_value = "127.0.0.1:4433")]
    address: SocketAddr,
    #[command(flatten)]
    certificate: Certificate,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    if !options.directory.is_dir() {
        return Err(format!("{} is no directory", options.directory.display()).into());
    }
    let (identity, fingerprint) = options.certificate.identity()?;
    let server = HttpsServer::bind(options.address, ServerTls::new(identity))?;
    let files = ServeDir::new(options.directory).with_buf_chunk_size(CHUNK);
    println!("the certificate's fingerprint is {fingerprint}");
    println!("{} listens", server.local_address());
    tokio::select! {
        () = server.serve(files) => {}
        _ = terminated.recv() => server.shutdown(DRAIN).await?,
    }
    let stats = server.stats();
    println!("{} requests, {} given up", stats.requests, stats.cancelled);
    Ok(())
}
