//! One data connection of a test, whatever carries it, and the loop that keeps it full or empty.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::Error;
use crate::parameters::{Direction, Parameters};
use crate::path::Probe;
use crate::payload::{BLOCK, block};
use crate::stream::{Sink, Source};

/// Which side of the test this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    /// Whether this side sends the data of a test.
    pub(crate) fn sends(self, test: &Parameters) -> bool {
        (self == Self::Client) == (test.direction == Direction::Upload)
    }
}

/// The addresses of a data connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// What the loops of all lanes of a test share.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Bytes that this lane has sent or received.
    pub(crate) counter: Arc<AtomicU64>,
    /// Bytes that may still be sent, on all lanes together.
    pub(crate) budget: Arc<AtomicU64>,
    /// When sending ends, if by time.
    pub(crate) deadline: Option<Instant>,
}

type Work = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// A data connection, ready to be used in one direction.
pub(crate) struct Lane {
    pub(crate) ends: Ends,
    pub(crate) probe: Box<dyn Probe>,
    work: Box<dyn FnOnce(Task) -> Work + Send>,
}

impl Lane {
    /// A lane that sends.
    pub(crate) fn sending(ends: Ends, probe: Box<dyn Probe>, sink: impl Sink) -> Self {
        Self {
            ends,
            probe,
            work: Box::new(|task| Box::pin(send_all(sink, task))),
        }
    }

    /// A lane that receives.
    pub(crate) fn receiving(ends: Ends, probe: Box<dyn Probe>, source: impl Source) -> Self {
        Self {
            ends,
            probe,
            work: Box::new(|task| Box::pin(receive_all(source, task))),
        }
    }

    /// Begins to use it: what to watch it by, and the loop to run.
    pub(crate) fn begin(self, task: Task) -> (Box<dyn Probe>, Work) {
        (self.probe, (self.work)(task))
    }
}

/// Sends the block over and over until the time is over or the budget used up.
async fn send_all(mut sink: impl Sink, task: Task) -> Result<(), Error> {
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
        let sent = sink
            .send(block.slice(offset..offset + length))
            .await
            .map_err(Error::stream("sending data"))?;
        task.budget
            .fetch_add((length - sent) as u64, Ordering::Relaxed);
        task.counter.fetch_add(sent as u64, Ordering::Relaxed);
        offset = (offset + sent) % BLOCK;
    }
    sink.finish()
        .await
        .map_err(Error::stream("ending a data connection"))
}

/// Receives until the sender ends the stream.
async fn receive_all(mut source: impl Source, task: Task) -> Result<(), Error> {
    loop {
        match source.receive().await {
            Ok(0) => return Ok(()),
            Ok(count) => task.counter.fetch_add(count as u64, Ordering::Relaxed),
            Err(error) => return Err(Error::stream("receiving data")(error)),
        };
    }
}

/// Takes at most `wanted` bytes from what is left.
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

    use bytes::Bytes;

    use super::*;

    /// Takes at most `at_once` bytes and keeps them.
    struct Kept {
        at_once: usize,
        data: Arc<std::sync::Mutex<Vec<u8>>>,
    }

    impl Sink for Kept {
        async fn send(&mut self, data: Bytes) -> io::Result<usize> {
            let count = data.len().min(self.at_once);
            self.data.lock().unwrap().extend_from_slice(&data[..count]);
            Ok(count)
        }

        async fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn partial_writes_still_send_the_block_in_order_and_the_budget_exactly() {
        let data = Arc::default();
        let sink = Kept {
            at_once: 1000,
            data: Arc::clone(&data),
        };
        let size = 2 * BLOCK + 12_345;
        let task = Task {
            counter: Arc::default(),
            budget: Arc::new(AtomicU64::new(size as u64)),
            deadline: None,
        };
        send_all(sink, task.clone()).await.unwrap();
        assert_eq!(task.counter.load(Ordering::Relaxed), size as u64);
        assert_eq!(task.budget.load(Ordering::Relaxed), 0);
        let data = data.lock().unwrap();
        assert_eq!(data.len(), size);
        assert!(data.iter().eq(block().iter().cycle().take(size)));
    }
}
