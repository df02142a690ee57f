//! The rows of comma-separated files that a scenario names.

use std::borrow::Cow;
use std::path::PathBuf;

use weir_units::ByteSize;

use crate::ScenarioError;
use crate::document::{Cursor, Reported, read_text};
use crate::error::ProblemKind;

/// A comma-separated file.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// The position of its name.
    at: Cursor<'a>,
    path: PathBuf,
    text: Cow<'a, str>,
}

/// A line of the file with its fields, without the spaces around them.
#[derive(Debug)]
pub(crate) struct Row<'r, const COLUMNS: usize> {
    pub(crate) line: u64,
    pub(crate) fields: [&'r str; COLUMNS],
    rows: &'r Rows<'r>,
}

impl<'a> Rows<'a> {
    /// Returns the rows of a text that was read from this file.
    pub(crate) fn of(at: Cursor<'a>, path: PathBuf, text: &'a str) -> Self {
        let text = Cow::Borrowed(text);
        Self { at, path, text }
    }

    /// Reads the file that a value names, of at most this many MiB.
    pub(crate) fn read(at: Cursor<'a>, file: &str, most: u64) -> Result<Self, Reported> {
        let path = at.problems.path_of(file);
        match read_text(&path, most, "CSV") {
            Ok(text) => Ok(Self {
                at,
                path,
                text: Cow::Owned(text),
            }),
            Err(error) => {
                let message = match error {
                    ScenarioError::Unreadable { source, .. } => source.to_string(),
                    error => error.to_string(),
                };
                Err(at.problem(ProblemKind::UnreadableFile { path, message }))
            }
        }
    }

    /// Reads each row; the first line may name the columns. There is at least one row.
    pub(crate) fn each<const COLUMNS: usize, T>(
        &self,
        names: [&str; COLUMNS],
        mut read: impl FnMut(Row<'_, COLUMNS>) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        let mut found = Vec::new();
        for (line, text) in (1..).zip(self.text.lines()) {
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = text.split(',').map(str::trim).collect();
            if found.is_empty() && fields == names {
                continue;
            }
            let Ok(fields) = <[&str; COLUMNS]>::try_from(fields) else {
                let expected = names.join(",");
                return Err(self.mistake(line, format!("expected {expected}, found `{text}`")));
            };
            let rows = self;
            found.push(read(Row { line, fields, rows })?);
        }
        if found.is_empty() {
            let message = format!("the file has no rows; each is {}", names.join(","));
            return Err(self.mistake(1, message));
        }
        Ok(found)
    }

    /// Reports a mistake in a line of the file.
    pub(crate) fn mistake(&self, line: u64, message: impl Into<String>) -> Reported {
        self.at.problem(ProblemKind::InFile {
            path: self.path.clone(),
            line,
            message: message.into(),
        })
    }
}

impl<const COLUMNS: usize> Row<'_, COLUMNS> {
    /// Reads a size: with a unit, or in bytes.
    pub(crate) fn size(&self, text: &str) -> Result<ByteSize, Reported> {
        match text.parse() {
            Ok(bytes) => Ok(ByteSize::from_bytes(bytes)),
            Err(_) => text
                .parse()
                .map_err(|error: weir_units::ParseError| self.mistake(error.to_string())),
        }
    }

    /// Reports a mistake in this line.
    pub(crate) fn mistake(&self, message: impl Into<String>) -> Reported {
        self.rows.mistake(self.line, message)
    }
}
