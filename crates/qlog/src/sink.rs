//! Where records go.

use std::io::Write;

/// Records that belong together: whole ones, in order.
#[derive(Debug)]
pub struct Batch {
    /// The records, each between a record separator and a newline (RFC 7464).
    pub records: Vec<u8>,
    /// How many events they hold; the header of a file is none.
    pub events: u64,
}

/// Takes the records of one connection, in order. It must not wait for long: the connection waits
/// for it.
pub trait Sink: Send {
    /// Takes the next records. What cannot be kept is dropped, whole batches only.
    fn write(&mut self, batch: Batch);
}

/// Writes records at once, for programs that may wait. Dropped without a word where writing fails.
#[derive(Debug)]
pub struct IoSink<W>(pub W);

impl<W: Write + Send> Sink for IoSink<W> {
    fn write(&mut self, batch: Batch) {
        // A log that cannot be written must not end what it is about.
        let written = self.0.write_all(&batch.records);
        let _ = written.and_then(|()| self.0.flush());
    }
}
