//! Collects connection keys in the NSS key log format, which Wireshark reads.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The key log lines collected so far.
#[derive(Debug, Default)]
pub(crate) struct KeyLines(Mutex<Vec<u8>>);

impl KeyLines {
    /// Returns the collected lines.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn append(&self, bytes: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
    }
}

impl rustls::KeyLog for KeyLines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        hexadecimal(&mut line, client_random);
        line.push(' ');
        hexadecimal(&mut line, secret);
        line.push('\n');
        self.append(line.as_bytes());
    }
}

/// A writer for stacks that format the lines themselves.
#[derive(Debug)]
pub(super) struct KeyWriter(pub(super) Arc<KeyLines>);

impl io::Write for KeyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hexadecimal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
}
