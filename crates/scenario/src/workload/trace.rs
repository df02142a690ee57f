//! Traces: flows from a file.

mod csv;
mod parquet;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration};

use super::WorkloadContext;
use crate::HostIndex;
use crate::document::{Cursor, Reported};
use crate::error::ProblemKind;
use crate::schema::{Accepts, Fields, LONGEST};

/// The columns.
const COLUMNS: [&str; 4] = ["start", "source", "destination", "size"];
/// The maximum file size in MiB.
const LARGEST_FILE: u64 = 1024;
/// The maximum number of flows.
const MOST_FLOWS: usize = 10_000_000;

/// Flows from a file, in the order of their starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The file, with its folder.
    pub file: PathBuf,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// The flows. They are not serialized: whoever reads the scenario reads the file.
    #[serde(skip)]
    pub flows: Arc<[TraceFlow]>,
}

/// A flow of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFlow {
    /// Its start, from the start of its group.
    pub start: Duration,
    /// The sender.
    pub from: HostIndex,
    /// The receiver.
    pub to: HostIndex,
    /// The size of its data.
    pub size: ByteSize,
}

/// The keys of a trace.
#[derive(Keys)]
pub(super) struct TraceKeys {
    /// The file, `.csv` or `.parquet`, with the columns `start`, `source`, `destination` and `size`; a relative
    /// path is relative to the scenario file. Starts count from the group's `start`, in seconds or with a unit;
    /// sizes are in bytes or with a unit; source and destination are hosts of `from` and `to`.
    #[key(accepts = Accepts::Text)]
    file: String,
    /// The SHA-256 of the file in hexadecimal digits: another file is refused. Results have it.
    #[key(accepts = Accepts::Text, absent = "any content will do")]
    sha256: Option<String>,
}

impl Trace {
    /// Reads the keys and the file.
    pub(super) fn read(
        fields: &Fields<'_>,
        context: WorkloadContext<'_>,
    ) -> Result<Self, Reported> {
        let keys = TraceKeys::read_keys(fields, ())?;
        let source = TraceSource::open(fields.error_position("file"), &keys.file, context)?;
        let sha256 = source.sha256();
        if let Some(expected) = keys
            .sha256
            .filter(|expected| !expected.eq_ignore_ascii_case(&sha256))
        {
            return Err(fields.error_position("sha256").conflict(
                format!(
                    "`{}` is another file: its SHA-256 is {sha256}, and not {expected}",
                    keys.file
                ),
                "name the file that was meant, or remove `sha256`",
            ));
        }
        let mut flows = source.flows()?;
        flows.sort_by_key(|flow| flow.start);
        Ok(Self {
            file: std::path::absolute(&source.path).unwrap_or(source.path),
            sha256,
            flows: flows.into(),
        })
    }
}

/// A file of flows.
struct TraceSource<'a> {
    /// The position of its name.
    at: Cursor<'a>,
    path: PathBuf,
    content: Vec<u8>,
    senders: HashMap<&'a str, HostIndex>,
    receivers: HashMap<&'a str, HostIndex>,
}

/// A flow as a file has it: its start in seconds or with a unit.
struct WrittenFlow<'r> {
    line: u64,
    start: &'r str,
    source: &'r str,
    destination: &'r str,
    size: &'r str,
}

impl<'a> TraceSource<'a> {
    fn open(at: Cursor<'a>, file: &str, context: WorkloadContext<'a>) -> Result<Self, Reported> {
        let path = at.problems.path_of(file);
        let content = read_file(&path).map_err(|error| {
            let (path, message) = (path.clone(), error.to_string());
            at.problem(ProblemKind::UnreadableFile { path, message })
        })?;
        let by_name = |hosts: Option<&[HostIndex]>| -> HashMap<&'a str, HostIndex> {
            let topology = context.topology;
            let named = |host: HostIndex| (&topology.host(host).name[..], host);
            match hosts {
                Some(hosts) => hosts.iter().copied().map(named).collect(),
                // The group's hosts have a mistake, which is reported.
                None => topology.host_indices().map(named).collect(),
            }
        };
        Ok(Self {
            at,
            path,
            content,
            senders: by_name(context.from),
            receivers: by_name(context.to),
        })
    }

    fn sha256(&self) -> String {
        let digest = Sha256::digest(&self.content);
        digest.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn flows(&self) -> Result<Vec<TraceFlow>, Reported> {
        let flows = match self
            .path
            .extension()
            .and_then(|extension| extension.to_str())
        {
            Some("csv") => csv::flows(self)?,
            Some("parquet") => parquet::flows(self)?,
            _ => {
                return Err(self.at.conflict(
                    format!(
                        "`{}` is neither a CSV nor a Parquet file by its name",
                        self.path.display()
                    ),
                    "name a file that ends with `.csv` or `.parquet`",
                ));
            }
        };
        if flows.len() > MOST_FLOWS {
            return Err(self.at.problem(ProblemKind::TooMany {
                what: "flows of a trace",
                count: flows.len() as u64,
                limit: MOST_FLOWS as u64,
                reason: "results have a row for each",
            }));
        }
        Ok(flows)
    }

    /// Checks a flow.
    fn flow(&self, written: &WrittenFlow<'_>) -> Result<TraceFlow, Reported> {
        let mistake = |message: String| self.mistake(written.line, message);
        let (from, to) = (
            self.host(&self.senders, written, written.source, "from")?,
            self.host(&self.receivers, written, written.destination, "to")?,
        );
        if from == to {
            return Err(mistake(format!(
                "`{}` is source and destination",
                written.source
            )));
        }
        let start = start(written.start).ok_or_else(|| {
            mistake(format!(
                "`{}` is no start; write seconds, such as 0.0015, or a unit, such as 1.5ms, from 0 to {LONGEST}",
                written.start
            ))
        })?;
        let size = size(written.size).ok_or_else(|| {
            mistake(format!(
                "`{}` is no size of a flow; write bytes, such as 1500, or a unit, such as 1.5KB, from 1B to 1TB",
                written.size
            ))
        })?;
        Ok(TraceFlow {
            start,
            from,
            to,
            size,
        })
    }

    fn host(
        &self,
        hosts: &HashMap<&str, HostIndex>,
        written: &WrittenFlow<'_>,
        name: &str,
        key: &str,
    ) -> Result<HostIndex, Reported> {
        hosts.get(name).copied().ok_or_else(|| {
            let names = {
                let mut names: Vec<_> = hosts.keys().copied().collect();
                names.sort_unstable();
                crate::error::list(names.into_iter())
            };
            let message = format!("`{name}` is no host of the group's `{key}`; these are {names}");
            self.mistake(written.line, message)
        })
    }

    /// Reports a mistake in a line or row of the file.
    fn mistake(&self, line: u64, message: impl Into<String>) -> Reported {
        self.at.problem(ProblemKind::InFile {
            path: self.path.clone(),
            line,
            message: message.into(),
        })
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    // A pipe might never end, or never begin.
    if !found.is_file() {
        let message = "this is no regular file; write the flows to one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if found.len() > LARGEST_FILE << 20 {
        let message = format!("a trace has at most {LARGEST_FILE} MiB");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read(path)
}

/// Reads a start: seconds, or a duration with a unit.
fn start(text: &str) -> Option<Duration> {
    let start = match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds <= LONGEST.as_secs_f64() => {
            Duration::from_secs_f64(seconds)
        }
        Ok(_) => return None,
        Err(_) => text.parse().ok()?,
    };
    (start <= LONGEST).then_some(start)
}

/// Reads a size: bytes, or with a unit.
fn size(text: &str) -> Option<ByteSize> {
    let size = match text.parse() {
        Ok(bytes) => ByteSize::from_bytes(bytes),
        Err(_) => text.parse().ok()?,
    };
    match Accepts::SIZE {
        Accepts::Size(least, most) => (least..=most).contains(&size).then_some(size),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
