//! The destination of records.

use std::io::Write;

/// Complete records, in order.
#[derive(Debug)]
pub struct Batch {
    /// The records, each between a record separator and a newline (RFC 7464).
    pub records: Vec<u8>,
    /// The number of events in them; a file's header is none.
    pub events: u64,
}

/// Receives the records of one connection, in order. It must not block for long: the connection
/// waits for it.
pub trait Sink: Send {
    /// Writes the next records. On overload it drops whole batches only.
    fn write(&mut self, batch: Batch);
}

/// Writes records at once, for programs that may block. Drops records silently where writing fails.
#[derive(Debug)]
pub struct IoSink<W>(pub W);

impl<W: Write + Send> Sink for IoSink<W> {
    fn write(&mut self, batch: Batch) {
        // A failed log must not end its connection.
        let written = self.0.write_all(&batch.records);
        let _ = written.and_then(|()| self.0.flush());
    }
}
