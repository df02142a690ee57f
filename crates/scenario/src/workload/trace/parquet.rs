//! Traces as Parquet files.

use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::{Field, Row};

use super::{COLUMNS, TraceFlow, TraceSource, WrittenFlow};
use crate::document::Reported;

/// Reads the flows.
pub(super) fn flows(source: &TraceSource<'_>) -> Result<Vec<TraceFlow>, Reported> {
    let unreadable = |line: u64, error: ParquetError| source.mistake(line, error.to_string());
    let content = bytes::Bytes::copy_from_slice(&source.content);
    let reader = SerializedFileReader::new(content).map_err(|error| unreadable(1, error))?;
    let schema = reader.metadata().file_metadata().schema();
    let has = |name: &str| schema.get_fields().iter().any(|field| field.name() == name);
    if let Some(missing) = COLUMNS.iter().find(|name| !has(name)) {
        let message = format!(
            "there is no column `{missing}`; there must be {}",
            COLUMNS.join(", ")
        );
        return Err(source.mistake(1, message));
    }
    let rows = reader
        .get_row_iter(None)
        .map_err(|error| unreadable(1, error))?;
    let flows: Result<Vec<_>, _> = (1..)
        .zip(rows)
        .map(|(line, row)| flow(source, line, &row.map_err(|error| unreadable(line, error))?))
        .collect();
    match flows {
        Ok(flows) if flows.is_empty() => Err(source.mistake(1, "the file has no rows")),
        flows => flows,
    }
}

fn flow(source: &TraceSource<'_>, line: u64, row: &Row) -> Result<TraceFlow, Reported> {
    let text = |name: &str| {
        let mut columns = row.get_column_iter();
        let column = columns.find(|(column, _)| *column == name);
        let found = column.and_then(|(_, field)| text(name, field));
        found.ok_or_else(|| {
            let what = match name {
                "start" => "seconds as a floating-point number, or text with a unit",
                "size" => "bytes as a whole number, or text with a unit",
                _ => "the name of a host as text",
            };
            source.mistake(line, format!("`{name}` is {what}"))
        })
    };
    source.flow(&WrittenFlow {
        line,
        start: &text(COLUMNS[0])?,
        source: &text(COLUMNS[1])?,
        destination: &text(COLUMNS[2])?,
        size: &text(COLUMNS[3])?,
    })
}

/// Returns the value of a column as text, if it has a fitting type.
fn text(column: &str, field: &Field) -> Option<String> {
    match (column, field) {
        // A whole number of seconds would rather be one of nanoseconds.
        ("start", Field::Double(seconds)) => Some(seconds.to_string()),
        ("start", Field::Float(seconds)) => Some(seconds.to_string()),
        ("size", Field::Int(bytes)) => Some(bytes.to_string()),
        ("size", Field::Long(bytes)) => Some(bytes.to_string()),
        ("size", Field::UInt(bytes)) => Some(bytes.to_string()),
        ("size", Field::ULong(bytes)) => Some(bytes.to_string()),
        (_, Field::Str(text)) => Some(text.clone()),
        _ => None,
    }
}
