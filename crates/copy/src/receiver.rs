//! The server: one task for each connection.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::block_in_place;
use tokio::time::timeout;
use weir_net::tls::Fingerprint;

use crate::error::Error;
use crate::path::RelativePath;
use crate::protocol::{Request, Response, Step, Upload};
use crate::store::{PartialFile, Store};
use crate::transport::{ByteStream, Listener, ServerSecurity, read_frame};

/// Connections served at a time; further ones wait.
const MOST_CONNECTIONS: usize = 64;
/// How long a refused client may take to read why.
const FAREWELL: StdDuration = StdDuration::from_secs(5);

/// The settings of a server.
#[derive(Debug)]
pub struct ServerOptions {
    /// The directory that receives the files.
    pub directory: PathBuf,
    /// The address to listen on; port 0 takes any free port.
    pub bind: SocketAddr,
    /// The transport and its key.
    pub security: ServerSecurity,
}

/// What happened on a server.
#[derive(Debug)]
pub enum Event {
    /// A file is complete.
    Received {
        /// The client.
        client: SocketAddr,
        /// Its name below the directory.
        path: RelativePath,
        /// Its size in bytes.
        size: u64,
        /// Whether it was there already.
        kept: bool,
    },
    /// A connection ended with an error.
    Failed {
        /// The client.
        client: SocketAddr,
        /// Why.
        error: Error,
    },
}

/// A server that receives files.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    store: Arc<Store>,
}

impl Server {
    /// Opens the directory and the socket. Must be called within a tokio runtime of several threads.
    ///
    /// # Errors
    /// [`Error::Directory`], [`Error::Endpoint`] or [`Error::Tls`].
    pub fn bind(options: ServerOptions) -> Result<Self, Error> {
        let store = Arc::new(Store::open(&options.directory)?);
        let listener = Listener::bind(options.bind, options.security)?;
        Ok(Self { listener, store })
    }

    /// Returns the address that the socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    /// Returns the fingerprint that clients pin, with DCQUIC.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.listener.fingerprint()
    }

    /// Serves clients for as long as it is polled. `events` learns of files and failures.
    pub async fn run(&self, events: mpsc::UnboundedSender<Event>) {
        let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        while let Some(incoming) = self.listener.accept().await {
            let (store, events) = (self.store.clone(), events.clone());
            let permits = permits.clone();
            tokio::spawn(async move {
                let Ok(_permit) = permits.acquire_owned().await else {
                    return;
                };
                let client = incoming.client();
                match incoming.establish().await {
                    Ok(stream) => serve(stream, client, &store, &events).await,
                    Err(error) => tracing::info!(%client, %error, "a connection failed"),
                }
            });
        }
    }
}

/// Serves one connection to its end.
async fn serve(
    mut stream: ByteStream,
    client: SocketAddr,
    store: &Store,
    events: &mpsc::UnboundedSender<Event>,
) {
    let mut session = Session {
        store,
        upload: Upload::new(),
        directory: RelativePath::default(),
        file: None,
        superseded: Arc::default(),
    };
    let tell = |event| drop(events.send(event));
    let served = session
        .run(&mut stream, |file, kept| {
            tell(Event::Received {
                client,
                path: file.header.path.clone(),
                size: file.header.size,
                kept,
            });
        })
        .await;
    // Unlocked, so that the client can go on at once.
    drop(session);
    if let Err(error) = served {
        let refusal = Response::refused(&error);
        tell(Event::Failed { client, error });
        let _ = timeout(FAREWELL, refuse(&mut stream, &refusal)).await;
    } else {
        // A connection that is dropped without this would be aborted. The client has ended its side.
        let _ = stream.writer.shutdown().await;
    }
    stream.close().await;
}

/// Sends a refusal, and waits for the client's end: a connection that is closed at once might lose it.
async fn refuse(stream: &mut ByteStream, refusal: &Response) -> io::Result<()> {
    let mut buffer = Vec::new();
    refusal.encode(&mut buffer);
    stream.writer.write_all(&buffer).await?;
    stream.writer.shutdown().await?;
    let mut ignored = vec![0; 64 * 1024];
    while stream.reader.read(&mut ignored).await? > 0 {}
    Ok(())
}

struct Session<'a> {
    store: &'a Store,
    upload: Upload,
    directory: RelativePath,
    file: Option<PartialFile>,
    /// Another connection wants the file.
    superseded: Arc<Notify>,
}

impl Session<'_> {
    /// Handles the client's messages to their end. `received` learns of each complete file: its path and
    /// size, and whether it was there already.
    async fn run(
        &mut self,
        stream: &mut ByteStream,
        mut received: impl FnMut(&PartialFile, bool),
    ) -> Result<(), Error> {
        let mut contents = Vec::new();
        let mut answer = Vec::new();
        loop {
            let kind = tokio::select! {
                biased;
                () = self.superseded.notified() => return Err(self.superseded_error()),
                read = read_frame(&mut stream.reader, &mut contents) => match read {
                    Err(Error::Connection(_)) if self.upload.may_end() => return Ok(()),
                    read => read?,
                },
            };
            let request = Request::decode(kind, &contents)?;
            let step = self.upload.handle(request)?;
            let response = block_in_place(|| self.perform(step, &mut received))?;
            let Some(response) = response else { continue };
            answer.clear();
            response.encode(&mut answer);
            let sent = stream.writer.write_all(&answer).await;
            sent.map_err(Error::Connection)?;
            stream.writer.flush().await.map_err(Error::Connection)?;
        }
    }

    fn superseded_error(&self) -> Error {
        let path = self.file.as_ref().map(|file| file.header.path.to_string());
        Error::Superseded {
            name: path.unwrap_or_default(),
        }
    }

    /// Performs a step on the file system. Returns the answer, if there is one.
    fn perform(
        &mut self,
        step: Step<'_>,
        received: &mut impl FnMut(&PartialFile, bool),
    ) -> Result<Option<Response>, Error> {
        let response = match (step, &mut self.file) {
            (Step::Enter(path), _) => {
                self.store.enter(&path)?;
                self.directory = path;
                Some(Response::Ready)
            }
            (Step::Look(mut header), file) => {
                header.path = header.path.below(&self.directory);
                let (partial, offer) = self.store.look(header, &self.superseded)?;
                self.upload.offered(offer)?;
                *file = Some(partial);
                Some(Response::Offer(offer))
            }
            (Step::Start(offset), Some(file)) => {
                file.start(offset)?;
                None
            }
            (Step::Append(data), Some(file)) => {
                file.append(data)?;
                None
            }
            (Step::Finish(digest), Some(file)) => {
                file.finish(digest)?;
                received(file, false);
                self.file = None;
                Some(Response::Done)
            }
            (Step::Keep, Some(file)) => {
                file.remove()?;
                received(file, true);
                self.file = None;
                Some(Response::Done)
            }
            // The order of the messages has been checked: each of them follows a file.
            (Step::Start(_) | Step::Append(_) | Step::Finish(_) | Step::Keep, None) => None,
        };
        Ok(response)
    }
}
