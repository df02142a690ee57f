//! One server.

use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use weir_net::{Duration, Endpoint};
use weir_rpc::{Code, Context, ResponseSender, Server, Status};

use super::store::{Store, StoreError};
use super::{Failure, files};

/// How long running calls may take when the server drains.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Args)]
pub(crate) struct Options {
    /// The directory of the certificate and the data
    #[arg(long)]
    directory: PathBuf,
    /// The server's address
    #[arg(long = "at")]
    address: SocketAddr,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let endpoint = Endpoint::builder()
        .server(files::server(&options.directory)?)
        .bind(options.address)?;
    let server = methods(Store::open(&options.directory)?)?;
    println!("{} listens", options.address);
    tokio::select! {
        () = server.serve(&endpoint) => {}
        _ = terminated.recv() => server.shutdown(DRAIN).await?,
        _ = interrupted.recv() => server.shutdown(DRAIN).await?,
    }
    Ok(())
}

fn methods(store: Store) -> Result<Server, weir_rpc::ServerError> {
    let (reading, writing, listing) = (store.clone(), store.clone(), store);
    Server::builder()
        .method("kv.Get", move |_: Context, key: Bytes| {
            let store = reading.clone();
            async move { store.get(text(&key)?).await.map_err(status) }
        })
        .method("kv.Put", move |_: Context, pair: Bytes| {
            let store = writing.clone();
            async move {
                let pair = text(&pair)?;
                let (key, value) = pair.split_once('=').ok_or_else(|| {
                    Status::new(Code::InvalidArgument, "the request is no key=value")
                })?;
                let written = store.put(key.to_owned(), value.to_owned()).await;
                written.map_err(status)?;
                Ok(Bytes::new())
            }
        })
        .server_streaming("kv.Keys", move |_, _, mut responses: ResponseSender| {
            let store = listing.clone();
            async move {
                for key in store.keys().await.map_err(status)? {
                    responses.send(key).await?;
                }
                Ok(())
            }
        })
        .build()
}

fn text(bytes: &Bytes) -> Result<String, Status> {
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|error| Status::new(Code::InvalidArgument, error.to_string()))
}

fn status(error: StoreError) -> Status {
    let code = match error {
        StoreError::NotFound(_) => Code::NotFound,
        StoreError::InvalidKey => Code::InvalidArgument,
        StoreError::Failed(_) => Code::Internal,
    };
    Status::new(code, error.to_string())
}
