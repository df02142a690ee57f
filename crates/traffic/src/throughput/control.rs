//! The control connection: JSON messages, each with a four-byte big-endian length prefix.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use weir_units::Duration;

use super::error::Error;

/// The maximum size of a message: the results of the maximum number of streams, with a margin.
const MAX_MESSAGE: u32 = 256 * 1024;

/// The number of messages that are read ahead. The protocol never has more in flight.
const READ_AHEAD: usize = 2;

/// A control connection on which `Ours` are sent and `Theirs` are received.
pub(super) struct Control<Ours, Theirs> {
    writer: OwnedWriteHalf,
    messages: mpsc::Receiver<Result<Theirs, Error>>,
    reader: JoinHandle<()>,
    limit: Duration,
    ours: PhantomData<fn(Ours)>,
}

impl<Ours: Serialize, Theirs: DeserializeOwned + Send + 'static> Control<Ours, Theirs> {
    /// Returns a control connection; sending one message may take `limit`.
    pub(super) fn new(stream: TcpStream, limit: Duration) -> Self {
        // Small messages depend on each other: without this, each could wait for an ACK. An error
        // only costs time.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        Self {
            writer,
            messages,
            reader: tokio::spawn(read_all(reader, sender)),
            limit,
            ours: PhantomData,
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Error::Closed`] if the other side is gone; [`Error::TimedOut`] if it accepts no data.
    pub(super) async fn send(&mut self, message: &Ours) -> Result<(), Error> {
        let text =
            serde_json::to_vec(message).map_err(|error| Error::Internal(error.to_string()))?;
        let length = u32::try_from(text.len())
            .ok()
            .filter(|length| *length <= MAX_MESSAGE)
            .ok_or_else(|| Error::Internal("a message is too long".to_owned()))?;
        let frame = [length.to_be_bytes().as_slice(), &text].concat();
        match timeout(self.limit.into(), self.writer.write_all(&frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Error::Closed("sending it a message")),
            Err(_) => Err(Error::TimedOut {
                what: "sending a message",
                limit: self.limit,
            }),
        }
    }

    /// Waits for the next message without a time limit. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::Closed`] while `doing` something, or [`Error::Protocol`].
    pub(super) async fn next(&mut self, doing: &'static str) -> Result<Theirs, Error> {
        match self.messages.recv().await {
            Some(message) => message,
            None => Err(Error::Closed(doing)),
        }
    }

    /// Waits for the next message for at most `limit`.
    ///
    /// # Errors
    /// See [`Control::next`], and [`Error::TimedOut`].
    pub(super) async fn next_within(
        &mut self,
        limit: Duration,
        doing: &'static str,
    ) -> Result<Theirs, Error> {
        timeout(limit.into(), self.next(doing))
            .await
            .map_err(|_| Error::TimedOut { what: doing, limit })?
    }
}

impl<Ours, Theirs> Drop for Control<Ours, Theirs> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Forwards messages until the connection ends or an invalid message arrives.
async fn read_all<Theirs: DeserializeOwned>(
    mut reader: OwnedReadHalf,
    sender: mpsc::Sender<Result<Theirs, Error>>,
) {
    loop {
        let message = match read_message(&mut reader).await {
            Ok(Some(text)) => serde_json::from_slice(&text)
                .map_err(|error| Error::Protocol(format!("unreadable message: {error}"))),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = message.is_err();
        if sender.send(message).await.is_err() || is_last {
            return;
        }
    }
}

/// Reads the text of the next message; `None` at the end of the connection.
async fn read_message(reader: &mut OwnedReadHalf) -> Result<Option<Vec<u8>>, Error> {
    let Ok(length) = reader.read_u32().await else {
        return Ok(None);
    };
    if length > MAX_MESSAGE {
        return Err(Error::Protocol(format!(
            "a message of {length} bytes, where at most {MAX_MESSAGE} are allowed"
        )));
    }
    let mut text = Vec::new();
    let read = reader.take(length.into()).read_to_end(&mut text).await;
    Ok((read.is_ok() && text.len() == length as usize).then_some(text))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn pair() -> (TcpStream, Control<u32, String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (other, _) = listener.accept().await.unwrap();
        (stream, Control::new(other, LIMIT))
    }

    #[tokio::test]
    async fn messages_arrive_whole_and_in_order() {
        let (stream, mut control) = pair().await;
        let mut peer: Control<String, u32> = Control::new(stream, LIMIT);
        let long = "x".repeat(100_000);
        peer.send(&long).await.unwrap();
        peer.send(&"second".to_owned()).await.unwrap();
        control.send(&7).await.unwrap();
        assert_eq!(control.next_within(LIMIT, "testing").await.unwrap(), long);
        assert_eq!(
            control.next_within(LIMIT, "testing").await.unwrap(),
            "second"
        );
        assert_eq!(peer.next_within(LIMIT, "testing").await.unwrap(), 7);
        drop(peer);
        assert!(matches!(
            control.next("testing").await,
            Err(Error::Closed("testing"))
        ));
    }

    #[tokio::test]
    async fn malformed_messages_are_refused() {
        for garbage in [b"\xff\xff\xff\xff".as_slice(), b"\0\0\0\x03abc"] {
            let (mut stream, mut control) = pair().await;
            stream.write_all(garbage).await.unwrap();
            assert!(matches!(
                control.next("testing").await,
                Err(Error::Protocol(_))
            ));
        }
    }

    #[tokio::test]
    async fn a_truncated_message_is_a_closed_connection() {
        let (mut stream, mut control) = pair().await;
        stream.write_all(b"\0\0\0\x03\"a").await.unwrap();
        drop(stream);
        assert!(matches!(
            control.next("testing").await,
            Err(Error::Closed(_))
        ));
    }
}
