//! A data connection of a test over any transport, and its send or receive loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::error::Error;
use super::payload::{BLOCK, block};
use crate::probe::Probe;
use crate::transport::{Connection, ConnectionAddresses};

/// The state that the loops of all lanes of a test share.
#[derive(Clone, Debug)]
pub(super) struct LoopContext {
    /// Bytes that this lane has sent or received.
    pub(super) counter: Arc<AtomicU64>,
    /// The bytes that may still be sent, on all lanes together.
    pub(super) budget: Arc<AtomicU64>,
    /// The time at which sending ends, if the test has a duration.
    pub(super) deadline: Option<Instant>,
}

/// The send or receive loop of a lane.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A data connection for one direction.
pub(super) struct DataConnection {
    pub(super) ends: ConnectionAddresses,
    pub(super) probe: Probe,
    /// The name of its congestion control.
    pub(super) congestion: String,
    work: Box<dyn FnOnce(LoopContext) -> Work + Send>,
}

impl DataConnection {
    /// Returns a lane that sends or receives.
    ///
    /// # Errors
    /// The operating system's error, when the connection is queried.
    pub(super) fn new(connection: impl Connection, sends: bool) -> Result<Self, crate::Error> {
        let watching = "watching a connection";
        Ok(Self {
            ends: connection.ends().map_err(crate::Error::failed(watching))?,
            probe: connection.probe().map_err(crate::Error::failed(watching))?,
            congestion: connection.congestion().unwrap_or_default(),
            work: Box::new(move |task| -> Work {
                if sends {
                    Box::pin(send_all(connection, task))
                } else {
                    Box::pin(receive_all(connection, task))
                }
            }),
        })
    }

    /// Starts the loop.
    pub(super) fn begin(self, task: LoopContext) -> Work {
        (self.work)(task)
    }
}

/// Sends the block repeatedly until the time or the budget is used up.
async fn send_all(mut connection: impl Connection, task: LoopContext) -> Result<(), Error> {
    let block = block();
    let mut offset = 0;
    while task
        .deadline
        .is_none_or(|deadline| Instant::now() < deadline)
    {
        let length = take(&task.budget, BLOCK - offset);
        if length == 0 {
            break;
        }
        let sent = connection
            .send(block.slice(offset..offset + length))
            .await
            .map_err(Error::stream("sending data"))?;
        task.budget
            .fetch_add((length - sent) as u64, Ordering::Relaxed);
        task.counter.fetch_add(sent as u64, Ordering::Relaxed);
        offset = (offset + sent) % BLOCK;
    }
    // Over DCQUIC and DCUDP everything must be delivered before the connection may close.
    let ended = async {
        connection.finish().await?;
        connection.delivered().await
    };
    ended
        .await
        .map_err(Error::stream("ending a data connection"))
}

/// Receives until the sender ends the stream, and then ends this direction too: a DCUDP sender
/// waits for that.
async fn receive_all(mut connection: impl Connection, task: LoopContext) -> Result<(), Error> {
    loop {
        match connection.receive(BLOCK, &mut |_| {}).await {
            Ok(0) => break,
            Ok(count) => task.counter.fetch_add(count as u64, Ordering::Relaxed),
            Err(error) => return Err(Error::stream("receiving data")(error)),
        };
    }
    connection
        .finish()
        .await
        .map_err(Error::stream("ending a data connection"))
}

/// Takes at most `wanted` bytes from the remaining budget.
fn take(budget: &AtomicU64, wanted: usize) -> usize {
    let wanted = wanted as u64;
    let before = budget
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(wanted))
        })
        .unwrap_or(0);
    before.min(wanted) as usize
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;
    use crate::byte_stream::{ByteStream, Carrier};

    impl Carrier for DuplexStream {
        fn ends(&self) -> io::Result<ConnectionAddresses> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn congestion(&self) -> Option<String> {
            None
        }

        fn probe(&self) -> io::Result<Probe> {
            Ok(Probe::new(|| None))
        }

        fn abort(&self) {}
    }

    #[tokio::test]
    async fn partial_writes_send_the_block_in_order_and_the_exact_budget() {
        // The duplex buffer holds a thousand bytes.
        let (ours, mut theirs) = duplex(1000);
        let size = 2 * BLOCK + 12_345;
        let task = LoopContext {
            counter: Arc::default(),
            budget: Arc::new(AtomicU64::new(size as u64)),
            deadline: None,
        };
        let mut data = Vec::new();
        let (sent, read) = tokio::join!(
            send_all(ByteStream::new(ours), task.clone()),
            theirs.read_to_end(&mut data)
        );
        sent.unwrap();
        assert_eq!(read.unwrap(), size);
        assert_eq!(task.counter.load(Ordering::Relaxed), size as u64);
        assert_eq!(task.budget.load(Ordering::Relaxed), 0);
        assert!(data.iter().eq(block().iter().cycle().take(size)));
    }
}
