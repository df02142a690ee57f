//! The server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::routing::put;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use weir_h3::{APPLICATION_PROTOCOL, Server};
use weir_net::tls::ServerTls;
use weir_net::{ByteSize, Duration, Endpoint};

use super::Failure;
use super::certificate::Certificate;
use super::store::{Store, StoreError};

/// How long running uploads may take when the server drains.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Options {
    /// The directory that files are kept in
    directory: PathBuf,
    /// The server's address
    #[arg(long = "at", default_value = "127.0.0.1:4433")]
    address: SocketAddr,
    /// The largest file
    #[arg(long, default_value = "10GB")]
    max_size: ByteSize,
    #[command(flatten)]
    certificate: Certificate,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let store = Arc::new(Store::open(options.directory, options.max_size)?);
    let router = Router::new()
        .route("/{name}", put(upload))
        .with_state(store);
    let (identity, fingerprint) = options.certificate.identity()?;
    let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
    let endpoint = Endpoint::builder()
        .server(tls.build()?)
        .bind(options.address)?;
    let server = Server::default();
    println!("the certificate's fingerprint is {fingerprint}");
    println!("{} listens", endpoint.local_address());
    tokio::select! {
        () = server.serve(&endpoint, router) => {}
        _ = terminated.recv() => server.shutdown(DRAIN).await?,
        // What runs is given up.
        _ = interrupted.recv() => {
            let _ = server.shutdown(Duration::ZERO).await;
        }
    }
    Ok(())
}

/// Keeps a body. Dropped when the client gives it up, or the server ends: then nothing stays.
async fn upload(
    State(store): State<Arc<Store>>,
    Path(name): Path<String>,
    request: Request,
) -> (StatusCode, String) {
    match store.keep(&name, request.into_body()).await {
        Ok(size) => {
            println!("{name}: {size} bytes");
            (StatusCode::CREATED, format!("{size} bytes\n"))
        }
        Err(error) => {
            println!("{name}: {error}");
            let status = match error {
                StoreError::Name => StatusCode::BAD_REQUEST,
                StoreError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                StoreError::Broken(_) => StatusCode::BAD_REQUEST,
                StoreError::NoChecksum | StoreError::Checksum => StatusCode::UNPROCESSABLE_ENTITY,
                StoreError::Io(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, format!("{error}\n"))
        }
    }
}
