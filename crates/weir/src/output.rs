//! Standard output, for results only.

use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// Writes text and flushes, so that a reader sees each line at once.
///
/// # Errors
/// [`Failure::OutputClosed`] if the reader is gone.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::output)
}

/// Writes a value as JSON over several lines.
///
/// # Errors
/// See [`print()`].
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::of)?;
    print(&format!("{text}\n"))
}

/// Writes a value as JSON on one line, for stream readers.
///
/// # Errors
/// See [`print()`].
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::of)?;
    print(&format!("{text}\n"))
}
