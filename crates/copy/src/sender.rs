//! The client.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration as StdDuration;

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::task::block_in_place;
use tokio::time::timeout;
use weir_units::Duration;

use crate::Sha256Digest;
use crate::error::Error;
use crate::path::RelativePath;
use crate::protocol::{FileHeader, LARGEST_CONTENTS, Offer, Request, Response};
use crate::source::SourceFile;
use crate::store::finish;
use crate::transport::{ByteReader, ByteStream, ClientSecurity, connect, read_frame};

/// How long a server that ends a connection may take to say why.
const FAREWELL: StdDuration = StdDuration::from_secs(2);

/// The settings of a client.
#[derive(Debug)]
pub struct ClientOptions {
    /// The server.
    pub server: SocketAddr,
    /// The directory below the one that is served.
    pub directory: RelativePath,
    /// The transport, and the server's fingerprint or the shared key.
    pub security: ClientSecurity,
    /// The time limit for the handshake.
    pub timeout: Duration,
}

/// The progress of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes that are there already and were compared.
    Compared(u64),
    /// Bytes that were passed to the transport.
    Sent(u64),
}

/// A file that is complete on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its SHA-256, which both ends have computed.
    pub digest: Sha256Digest,
    /// Bytes that were sent; the others were there already.
    pub sent: u64,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: ByteStream,
}

impl Client {
    /// Connects, and enters the directory. Must be called within a tokio runtime of several threads.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Connect`], [`Error::Refused`] and others.
    pub async fn connect(options: &ClientOptions) -> Result<Self, Error> {
        let stream = connect(options.server, &options.security, options.timeout).await?;
        let mut client = Self { stream };
        client
            .send(&Request::Hello(options.directory.clone()))
            .await?;
        match client.receive().await? {
            Response::Ready => Ok(client),
            other => Err(unexpected(&other)),
        }
    }

    /// Copies a file. `progress` is told of each block.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::SourceChanged`], [`Error::Refused`], [`Error::Connection`]. The
    /// connection is of no further use then.
    pub async fn copy(
        &mut self,
        source: &SourceFile,
        mut progress: impl FnMut(Progress),
    ) -> Result<Outcome, Error> {
        let mut file = Reader::open(source)?;
        self.send(&Request::File(FileHeader {
            path: source.remote.clone(),
            size: source.size,
            mode: source.mode,
        }))
        .await?;
        let offer = match self.receive().await? {
            Response::Offer(offer) => offer,
            other => return Err(unexpected(&other)),
        };
        let (there, digest) = match offer {
            Offer::Nothing => (0, None),
            Offer::Partial { length, digest } => (length, Some(digest)),
            Offer::Complete(digest) => (source.size, Some(digest)),
        };
        let mut block = vec![0; LARGEST_CONTENTS];
        let mut compared = 0;
        while compared < there {
            compared += file.read(&mut block, there - compared)? as u64;
            progress(Progress::Compared(compared));
        }
        let is_same = digest.is_some_and(|digest| finish(file.digest.clone()) == digest);
        if is_same && matches!(offer, Offer::Complete(_)) {
            let digest = finish(file.digest);
            self.send(&Request::Keep).await?;
            return self.done(digest, 0).await;
        }
        if !is_same {
            file = Reader::open(source)?;
        }
        let start = if is_same { there } else { 0 };
        let digest = self
            .send_from(file, start, &mut block, &mut progress)
            .await?;
        self.done(digest, source.size - start).await
    }

    /// Sends the rest of a file, while listening for a refusal.
    async fn send_from(
        &mut self,
        mut file: Reader<'_>,
        start: u64,
        block: &mut [u8],
        progress: &mut impl FnMut(Progress),
    ) -> Result<Sha256Digest, Error> {
        let size = file.source.size;
        let ByteStream { reader, writer, .. } = &mut self.stream;
        let sending = async {
            let mut frame = Vec::new();
            Request::Start(start).encode(&mut frame);
            let mut at = start;
            while at < size {
                let count = file.read(block, size - at)?;
                let data = block.get(..count).unwrap_or_default();
                Request::Data(data).encode(&mut frame);
                writer.write_all(&frame).await.map_err(Error::Connection)?;
                frame.clear();
                at += count as u64;
                progress(Progress::Sent(at));
            }
            file.check_end()?;
            let digest = finish(file.digest);
            Request::End(digest).encode(&mut frame);
            writer.write_all(&frame).await.map_err(Error::Connection)?;
            writer.flush().await.map_err(Error::Connection)?;
            Ok(digest)
        };
        let sent = tokio::select! {
            biased;
            refused = refusal(reader) => return Err(refused),
            sent = sending => sent,
        };
        match sent {
            // The server may have said why it ended the connection.
            Err(Error::Connection(error)) => match timeout(FAREWELL, refusal(reader)).await {
                Ok(refused @ Error::Refused(_)) => Err(refused),
                _ => Err(Error::Connection(error)),
            },
            sent => sent,
        }
    }

    /// Waits until the server has verified the file.
    async fn done(&mut self, digest: Sha256Digest, sent: u64) -> Result<Outcome, Error> {
        match self.receive().await? {
            Response::Done => Ok(Outcome { digest, sent }),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends the connection. The files are complete, so that nothing that happens to it matters any more.
    pub async fn close(mut self) {
        let _ = self.stream.writer.shutdown().await;
        self.stream.close().await;
    }

    async fn send(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let mut buffer = Vec::new();
        request.encode(&mut buffer);
        let writer = &mut self.stream.writer;
        writer.write_all(&buffer).await.map_err(Error::Connection)?;
        writer.flush().await.map_err(Error::Connection)
    }

    async fn receive(&mut self) -> Result<Response, Error> {
        receive(&mut self.stream.reader).await
    }
}

async fn receive(reader: &mut ByteReader) -> Result<Response, Error> {
    let mut contents = Vec::new();
    let kind = read_frame(reader, &mut contents).await?;
    Ok(Response::decode(kind, &contents)?)
}

/// Waits for the only message that a server sends within a file.
async fn refusal(reader: &mut ByteReader) -> Error {
    match receive(reader).await {
        Ok(response) => unexpected(&response),
        Err(error) => error,
    }
}

fn unexpected(response: &Response) -> Error {
    match response {
        Response::Refused(reason) => Error::Refused(reason.clone()),
        other => Error::Connection(io::Error::other(format!(
            "the server sent {other:?} at the wrong time"
        ))),
    }
}

/// Reads a file and hashes it on the way.
struct Reader<'a> {
    source: &'a SourceFile,
    file: File,
    digest: Sha256,
}

impl<'a> Reader<'a> {
    fn open(source: &'a SourceFile) -> Result<Self, Error> {
        let file = File::open(&source.local).map_err(|error| Error::Source {
            path: source.local.clone(),
            source: error,
        })?;
        Ok(Self {
            source,
            file,
            digest: Sha256::new(),
        })
    }

    /// Reads up to `most` bytes into `block`: at least one.
    fn read(&mut self, block: &mut [u8], most: u64) -> Result<usize, Error> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(block.len());
        let target = block.get_mut(..most).unwrap_or_default();
        block_in_place(|| {
            let count = self.file.read(target).map_err(|error| Error::Source {
                path: self.source.local.clone(),
                source: error,
            })?;
            if count == 0 {
                return Err(Error::SourceChanged(self.source.local.clone()));
            }
            self.digest.update(target.get(..count).unwrap_or_default());
            Ok(count)
        })
    }

    /// Reports a file that has grown.
    fn check_end(&mut self) -> Result<(), Error> {
        let status = self.file.metadata().map_err(|error| Error::Source {
            path: self.source.local.clone(),
            source: error,
        })?;
        if status.len() == self.source.size {
            Ok(())
        } else {
            Err(Error::SourceChanged(self.source.local.clone()))
        }
    }
}
