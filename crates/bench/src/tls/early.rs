//! A TLS server that reads early data and answers it before the handshake has ended (0.5-RTT data),
//! as a QUIC server does: the fair counterpart of 0-RTT.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use rustls::{ServerConfig, ServerConnection};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::payload::{Library, Reply, Request};

/// Serves one connection. Whatever goes wrong with it ends the connection, not the server.
pub(super) async fn serve(stream: TcpStream, config: Arc<ServerConfig>, library: Arc<Library>) {
    let Ok(tls) = ServerConnection::new(config) else {
        return;
    };
    let mut session = Session {
        stream,
        tls,
        library,
        request: Vec::with_capacity(Request::LENGTH),
        reply: None,
        chunk: Bytes::new(),
    };
    // An error is the client's doing or its absence; the connection is dropped either way.
    let _ = session.run().await;
}

struct Session {
    stream: TcpStream,
    tls: ServerConnection,
    library: Arc<Library>,
    /// The part of a request that has come.
    request: Vec<u8>,
    reply: Option<Reply>,
    /// What is left of the reply's current chunk.
    chunk: Bytes,
}

impl Session {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            self.take_request()?;
            self.give_reply()?;
            while self.tls.wants_write() {
                match self.tls.write_tls(&mut Transfer(&self.stream)) {
                    Ok(_) => self.give_reply()?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            let mut interest = Interest::READABLE;
            if self.tls.wants_write() {
                interest |= Interest::WRITABLE;
            }
            let ready = self.stream.ready(interest).await?;
            if ready.is_readable() && !self.receive()? {
                return Ok(());
            }
        }
    }

    /// Reads from the socket; false at the end of the connection.
    fn receive(&mut self) -> io::Result<bool> {
        match self.tls.read_tls(&mut Transfer(&self.stream)) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
        self.tls
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(true)
    }

    /// Takes a request from the early data or, later, from the ordinary data.
    fn take_request(&mut self) -> io::Result<()> {
        while self.reply.is_none() {
            let mut buffer = [0; Request::LENGTH];
            let space = Request::LENGTH - self.request.len();
            let length = self.read(buffer.get_mut(..space).unwrap_or_default())?;
            if length == 0 {
                break;
            }
            self.request
                .extend_from_slice(buffer.get(..length).unwrap_or_default());
            if self.request.len() == Request::LENGTH {
                let request = Request::decode(&self.request)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                self.request.clear();
                self.reply = Some(self.library.reply(request));
            }
        }
        Ok(())
    }

    /// Reads data that has been decrypted; 0 if there is none yet.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(mut early) = self.tls.early_data() {
            let length = early.read(buffer)?;
            if length > 0 {
                return Ok(length);
            }
        }
        match self.tls.reader().read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Gives as much of the reply to TLS as its buffer takes.
    fn give_reply(&mut self) -> io::Result<()> {
        while let Some(reply) = &mut self.reply {
            if self.chunk.is_empty() {
                match reply.next() {
                    Some(chunk) => self.chunk = chunk,
                    None => {
                        self.reply = None;
                        break;
                    }
                }
            }
            let taken = self.tls.writer().write(&self.chunk)?;
            if taken == 0 {
                break;
            }
            let _ = self.chunk.split_to(taken);
        }
        Ok(())
    }
}

/// The socket as rustls wants to see it: never blocking.
struct Transfer<'a>(&'a TcpStream);

impl Read for Transfer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Transfer<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.try_write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
