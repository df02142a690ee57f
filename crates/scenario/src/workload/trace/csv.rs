//! Traces as comma-separated text.

use super::{COLUMNS, TraceFlow, TraceSource, WrittenFlow};
use crate::document::Reported;
use crate::rows::Rows;

/// Reads the flows.
pub(super) fn flows(source: &TraceSource<'_>) -> Result<Vec<TraceFlow>, Reported> {
    let rows = match std::str::from_utf8(&source.content) {
        Ok(text) => Rows::of(source.at.clone(), source.path.clone(), text),
        Err(error) => {
            let before = &source.content[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            return Err(source.mistake(line as u64, "this is no UTF-8 text"));
        }
    };
    rows.each(COLUMNS, |row| {
        let [start, from, to, size] = row.fields;
        source.flow(&WrittenFlow {
            line: row.line,
            start,
            source: from,
            destination: to,
            size,
        })
    })
}
