//! The server's application, which answers requests.

use std::collections::HashMap;

use bytes::Bytes;
use quiche::Connection;
use weir_traffic::calls::payload::{Library, Reply, Request};

use super::server::Application;

/// Answers each request on its stream.
#[derive(Default)]
pub(super) struct Replies {
    library: Library,
}

/// The received part of a request, then the unsent part of its reply.
pub(super) enum Exchange {
    Request(Vec<u8>),
    Reply { rest: Reply, chunk: Bytes },
}

impl Application for Replies {
    type Session = HashMap<u64, Exchange>;

    fn begin(&mut self, _connection: &mut Connection) -> Self::Session {
        HashMap::new()
    }

    fn receive(&mut self, connection: &mut Connection, exchanges: &mut Self::Session) {
        if self.read_requests(connection, exchanges).is_none() {
            // The application chooses the error code.
            let _ = connection.close(true, 1, b"malformed request");
        }
    }

    fn send(&mut self, connection: &mut Connection, exchanges: &mut Self::Session) -> bool {
        let mut progress = false;
        exchanges.retain(|stream, exchange| {
            let Exchange::Reply { rest, chunk } = exchange else {
                return true;
            };
            loop {
                if chunk.is_empty() {
                    *chunk = rest.next().unwrap_or_default();
                }
                let is_last = rest.remaining() == 0;
                match connection.stream_send(*stream, chunk, is_last) {
                    Ok(taken) => {
                        progress |= taken > 0;
                        let whole = taken == chunk.len();
                        let _ = chunk.split_to(taken);
                        if !whole {
                            return true;
                        }
                        if is_last {
                            return false;
                        }
                    }
                    Err(quiche::Error::Done) => return true,
                    // The client has reset the stream or closed the connection.
                    Err(_) => return false,
                }
            }
        });
        progress
    }
}

impl Replies {
    /// Reads requests; `None` if one is malformed.
    fn read_requests(
        &self,
        connection: &mut Connection,
        exchanges: &mut HashMap<u64, Exchange>,
    ) -> Option<()> {
        if !connection.is_established() && !connection.is_in_early_data() {
            return Some(());
        }
        let mut buffer = [0; Request::LENGTH + 1];
        for stream in connection.readable() {
            while let Ok((length, ended)) = connection.stream_recv(stream, &mut buffer) {
                let exchange = exchanges
                    .entry(stream)
                    .or_insert_with(|| Exchange::Request(Vec::with_capacity(Request::LENGTH)));
                let Exchange::Request(request) = exchange else {
                    return None;
                };
                request.extend_from_slice(buffer.get(..length)?);
                if request.len() > Request::LENGTH {
                    return None;
                }
                if ended {
                    *exchange = Exchange::Reply {
                        rest: self.library.reply(Request::decode(request).ok()?),
                        chunk: Bytes::new(),
                    };
                }
            }
        }
        Some(())
    }
}
