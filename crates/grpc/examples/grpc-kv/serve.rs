//! One server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use futures_util::stream;
use tokio::signal::unix::{SignalKind, signal};
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, async_trait};
use weir_grpc::Server;
use weir_net::Duration;

use super::generated::store_server::{Store as Service, StoreServer};
use super::generated::{All, Done, Key, Pair, Value};
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
    let server = Server::bind(options.address, files::server(&options.directory)?)?;
    let handlers = Handlers(Store::open(&options.directory)?);
    println!("{} listens", options.address);
    tokio::select! {
        () = server.serve(Routes::new(StoreServer::new(handlers))) => {}
        _ = terminated.recv() => server.shutdown(DRAIN).await?,
        _ = interrupted.recv() => server.shutdown(DRAIN).await?,
    }
    Ok(())
}

struct Handlers(Store);

#[async_trait]
impl Service for Handlers {
    type KeysStream = BoxStream<Key>;

    async fn get(&self, request: Request<Key>) -> Result<Response<Value>, Status> {
        let value = self.0.clone().get(request.into_inner().key).await;
        let value = value.map_err(status)?;
        Ok(Response::new(Value { value }))
    }

    async fn put(&self, request: Request<Pair>) -> Result<Response<Done>, Status> {
        let Pair { key, value } = request.into_inner();
        self.0.clone().put(key, value).await.map_err(status)?;
        Ok(Response::new(Done {}))
    }

    async fn keys(&self, _: Request<All>) -> Result<Response<BoxStream<Key>>, Status> {
        let keys = self.0.clone().keys().await.map_err(status)?;
        let keys = stream::iter(keys.into_iter().map(|key| Ok(Key { key })));
        Ok(Response::new(Box::pin(keys)))
    }
}

fn status(error: StoreError) -> Status {
    match error {
        StoreError::NotFound(_) => Status::not_found(error.to_string()),
        StoreError::InvalidKey => Status::invalid_argument(error.to_string()),
        StoreError::Failed(_) => Status::internal(error.to_string()),
    }
}
