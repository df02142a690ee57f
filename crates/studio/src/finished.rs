//! A finished run, as `weir run --out` has written it: its summary and its tables.

use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::json;
use weir_counters::FlowCounters;
use weir_results::{Drops, FlowRecord, GroupSample, Observation, PortSample, Recorder, Summary};
use weir_scenario::Scenario;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::description::{Description, Thresholds};
use crate::error::StudioError;
use crate::flow_rows::FlowRow;
use crate::samples::{Recording, Recordings, Samples};
use crate::script::Script;

/// What was written of a run with the scenario's own values.
#[derive(Debug)]
pub struct FinishedRun {
    name: String,
    summary: Summary,
    ports: Vec<String>,
    groups: Vec<String>,
    recordings: Recordings,
    flows: Vec<FlowRow>,
    /// The scenario, if the directory has it.
    scenario: Option<Scenario>,
}

const SUMMARY: &str = "summary.json";
const SCENARIO: &str = "weir-run.toml";

impl FinishedRun {
    /// Whether a directory has what [`Self::read`] reads.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(SUMMARY).is_file()
    }

    /// Reads a directory. Of an experiment with variants only the run with the file's own values is shown.
    ///
    /// # Errors
    /// A file is missing, or is none of `weir run`.
    pub fn read(directory: &Path) -> Result<Self, StudioError> {
        let path = directory.join(SUMMARY);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let summary = Summary::from_json(&text).map_err(|error| unreadable(&path, error))?;
        let ports: Vec<String> = summary.run.ports.keys().cloned().collect();
        let groups: Vec<String> = summary.run.groups.keys().cloned().collect();
        let mut recordings = Recordings::of(ports.clone(), groups.clone());
        read_samples(&directory.join("samples.parquet"), &mut recordings)?;
        let flows = read_flows(&directory.join("flows.parquet"), &mut recordings)?;
        Ok(Self {
            name: directory.display().to_string(),
            summary,
            ports,
            groups,
            recordings,
            flows,
            scenario: read_scenario(directory),
        })
    }

    /// Returns what ports and groups showed, which live runs sample at different times.
    pub(crate) fn samples(&self) -> [&Samples; 2] {
        self.recordings.samples()
    }

    /// Returns the recording that has the completed transfers.
    pub(crate) fn completed(&self) -> &Recording {
        &self.recordings.groups
    }

    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    pub(crate) fn flows(&self) -> &[FlowRow] {
        &self.flows
    }

    /// Returns what the page shows of it: with the network, if the scenario is there.
    pub(crate) fn description(&self) -> Description {
        let run = &self.summary.run;
        let groups = run.groups.iter().map(|(name, group)| (name, group.flows));
        Description::of_finished(
            &self.name,
            &self.summary,
            (&self.ports, groups),
            self.scenario.as_ref(),
        )
    }

    /// Returns the thresholds of the measured ports, if they are known.
    pub(crate) fn thresholds(&self) -> Option<Thresholds> {
        let scenario = self.scenario.as_ref()?;
        Some(Thresholds::of(scenario, &self.ports))
    }

    /// Returns the state that the page shows.
    pub(crate) fn state(&self) -> serde_json::Value {
        let run = &self.summary.run;
        let changes = run.changes.iter().map(|change| {
            let at = change.at.as_secs_f64();
            json!({ "at": at, "text": change.to_string(), "knob": "", "value": null })
        });
        json!({
            "run": "a", "now": run.simulated.as_secs_f64(), "status": "ended", "speed": null,
            "log": changes.collect::<Vec<_>>(), "error": null, "knobs": {}, "failed": [],
        })
    }
}

/// Reads the scenario of the run. Older directories have none, and one that refers to files elsewhere may not load: the
/// network is not drawn then.
fn read_scenario(directory: &Path) -> Option<Scenario> {
    let path = directory.join(SCENARIO);
    let text = fs::read_to_string(&path).ok()?;
    let script = Script::of_file(&path.display().to_string(), &text);
    match script.scenario() {
        Ok(scenario) => Some(scenario),
        Err(error) => {
            tracing::warn!("the network is not drawn: {error}");
            None
        }
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> StudioError {
    StudioError::Finished {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn read_samples(path: &Path, recording: &mut Recordings) -> Result<(), StudioError> {
    for_each_row(path, |row| {
        let time = row.time("time_s");
        if let Some(port) = row.text("port") {
            let drops = Drops {
                red: row.count("drops_red"),
                tail: row.count("drops_tail"),
                buffer: row.count("drops_buffer"),
                // The table joins all others.
                codel: row.count("drops_other"),
                ..Drops::default()
            };
            recording.record(Observation::Port(PortSample {
                time,
                port,
                queue: ByteSize::from_bytes(row.count("queue_bytes")),
                queue_packets: row.count("queue_packets"),
                sent: ByteSize::from_bytes(row.count("sent_bytes")),
                marks: row.count("marks"),
                drops,
            }))?;
        } else if let Some(group) = row.text("group") {
            let counters = FlowCounters {
                delivered: ByteSize::from_bytes(row.count("delivered_bytes")),
                timeouts: row.count("timeouts"),
                ..FlowCounters::ZERO
            };
            recording.record(Observation::Group(GroupSample {
                time,
                group,
                counters,
                goodput: Rate::from_bits_per_second(row.count("goodput_bps")),
                window: row.known("window_bytes").map(ByteSize::from_bytes),
            }))?;
        }
        Ok(())
    })
}

fn read_flows(path: &Path, recording: &mut Recordings) -> Result<Vec<FlowRow>, StudioError> {
    let mut flows = Vec::new();
    for_each_row(path, |row| {
        let record = FlowRecord {
            group: row.text("group").unwrap_or_default(),
            index: row.count("index"),
            source: row.text("source").unwrap_or_default(),
            destination: row.text("destination").unwrap_or_default(),
            start: row.time("start_s"),
            end: row.number("end_s").map(|end| Time::ZERO + span(end)),
            size: row.known("size_bytes").map(ByteSize::from_bytes),
            ideal: row.number("ideal_s").map(span),
            counters: FlowCounters {
                delivered: ByteSize::from_bytes(row.count("delivered_bytes")),
                marks: row.count("marks"),
                retransmitted: ByteSize::from_bytes(row.count("retransmitted_bytes")),
                timeouts: row.count("timeouts"),
                ..FlowCounters::ZERO
            },
            goodput: Rate::from_bits_per_second(row.count("goodput_bps")),
            smoothed_rtt: row.number("srtt_s").map(span),
            min_rtt: row.number("min_rtt_s").map(span),
        };
        flows.push(FlowRow::of(&record, None));
        recording.record(Observation::Flow(record))?;
        Ok(())
    })?;
    Ok(flows)
}

/// Reads the rows of the run with the file's own values.
fn for_each_row(
    path: &Path,
    mut take: impl FnMut(Cells<'_>) -> Result<(), StudioError>,
) -> Result<(), StudioError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| unreadable(path, error))?;
    let rows = reader.get_row_iter(None);
    for row in rows.map_err(|error| unreadable(path, error))? {
        let row = row.map_err(|error| unreadable(path, error))?;
        let cells = Cells(&row);
        if cells.text("variant").is_none() {
            take(cells)?;
        }
    }
    Ok(())
}

/// A row's cells by column name. Of another type, or missing, they are empty.
struct Cells<'r>(&'r Row);

impl<'r> Cells<'r> {
    fn field(&self, column: &str) -> Option<&'r Field> {
        let mut cells = self.0.get_column_iter();
        cells
            .find(|(name, _)| *name == column)
            .map(|(_, field)| field)
    }

    fn text(&self, column: &str) -> Option<&'r str> {
        match self.field(column)? {
            Field::Str(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, column: &str) -> Option<f64> {
        match self.field(column)? {
            Field::Double(value) => Some(*value),
            _ => None,
        }
    }

    fn known(&self, column: &str) -> Option<u64> {
        match self.field(column)? {
            Field::Long(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    fn count(&self, column: &str) -> u64 {
        self.known(column).unwrap_or_default()
    }

    fn time(&self, column: &str) -> Time {
        Time::ZERO + span(self.number(column).unwrap_or_default())
    }
}

/// Seconds of a table; what is no time becomes zero.
fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use weir_results::{Output, RunFiles};
    use weir_sim::Simulation;

    use super::*;
    use crate::script::Script;

    const TEXT: &str = include_str!("../tests/two-flows.toml");

    #[test]
    fn a_directory_with_its_scenario_shows_the_network() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path());
        fs::write(directory.path().join(SCENARIO), TEXT).unwrap();
        let run = FinishedRun::read(directory.path()).unwrap();
        let described = serde_json::to_value(run.description()).unwrap();
        assert!(!described["nodes"].as_array().unwrap().is_empty());
        let measured = described["links"].as_array().unwrap().iter();
        let measured = measured.filter(|link| !link["measured"].is_null());
        assert_eq!(
            measured.count(),
            described["ports"].as_array().unwrap().len()
        );
        assert!(described["ports"][0]["rate"].as_f64().unwrap() > 0.0);
        let thresholds = serde_json::to_value(run.thresholds().unwrap()).unwrap();
        assert!(!thresholds["ports"][0].as_array().unwrap().is_empty());
    }

    /// Writes the test's run to a directory, and returns what a studio records of it.
    fn write(directory: &Path) -> Recording {
        let scenario = Script::of_file("test.toml", TEXT).scenario().unwrap();
        let output = Output::create(directory).unwrap();
        let files = output.run(Vec::new(), scenario.duration).unwrap();
        let mut both = (files, Recording::new(&scenario));
        let mut simulation = Simulation::new(scenario).unwrap();
        simulation.advance(Time::MAX, &mut both).unwrap();
        let run = simulation.finish(&mut both).unwrap();
        let (files, recording) = both;
        let finished = RunFiles::finish(files).unwrap();
        let summary = Summary::new("Two flows", "a test", run);
        output.commit(&summary, "", [finished]).unwrap();
        recording
    }

    #[test]
    fn a_directory_shows_what_the_run_recorded() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!FinishedRun::is_at(directory.path()));
        let recorded = write(directory.path());
        assert!(FinishedRun::is_at(directory.path()));
        let run = FinishedRun::read(directory.path()).unwrap();
        let json = |samples: &Samples| serde_json::to_value(samples).unwrap();
        let [ports, shown] = run.samples().map(json);
        let recorded = json(&recorded.samples);
        assert_eq!(ports["time"], recorded["time"]);
        assert_eq!(ports["ports"], recorded["ports"]);
        assert_eq!(shown["time"], recorded["time"]);
        // The table has no marks of groups, and counts retransmissions in packets.
        for column in ["window", "delivered", "timeouts"] {
            assert_eq!(shown["groups"][0][column], recorded["groups"][0][column]);
        }
        assert_eq!(run.flows().len(), 2);
        let described = serde_json::to_value(run.description()).unwrap();
        assert_eq!(described["kind"], "finished");
        assert_eq!(described["groups"][0]["flows"], 2);
        assert_eq!(described["nodes"].as_array().unwrap().len(), 0);
        assert_eq!(run.state()["status"], "ended");
    }

    #[test]
    fn what_is_no_table_is_named() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path());
        let path = directory.path().join("samples.parquet");
        fs::write(&path, "no table").unwrap();
        let error = FinishedRun::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("samples.parquet"), "{error}");
    }
}
