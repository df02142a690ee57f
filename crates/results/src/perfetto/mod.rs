//! A run as a trace for Perfetto (<https://ui.perfetto.dev>): queues, rates and windows as counters, flows as slices,
//! faults and changes as instants.
//!
//! The flows of a group are spread over as few tracks as keep them apart.

mod lanes;
mod message;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use prost::Message as _;
use weir_units::{ByteSize, Time};

use crate::error::OutputError;
use crate::record::{FlowRecord, GroupSample, PortSample};
use crate::staged::StagedFile;
use crate::{Observation, Recorder};
use lanes::Lanes;
use message::{
    CounterDescriptor, DebugAnnotation, Kind, Trace, TracePacket, TrackDescriptor, TrackEvent, Unit,
};

/// A trace that is being written. It gets its name when it is [finished](Self::finish); if it is dropped earlier,
/// nothing is left.
#[derive(Debug)]
pub struct PerfettoTrace {
    writer: Writer,
    /// The tracks of counters, by what they count.
    counters: HashMap<String, u64>,
    /// The flows by group.
    flows: Vec<(String, Vec<Slice>)>,
}

/// A flow.
#[derive(Clone, Debug)]
struct Slice {
    begin: u64,
    /// None if it is open at the end of the run.
    end: Option<u64>,
    name: String,
    values: Vec<DebugAnnotation>,
}

/// The file, and the number of its last track.
#[derive(Debug)]
struct Writer {
    file: BufWriter<StagedFile>,
    path: PathBuf,
    tracks: u64,
}

/// All packets come from one sequence.
const SEQUENCE: u32 = 1;

impl Writer {
    fn packet(&mut self, packet: TracePacket) -> Result<(), OutputError> {
        let trace = Trace {
            packet: vec![TracePacket {
                trusted_packet_sequence_id: Some(SEQUENCE),
                ..packet
            }],
        };
        let written = self.file.write_all(&trace.encode_to_vec());
        written.map_err(OutputError::writing(&self.path))
    }

    /// Adds a track, and returns its number.
    fn track(
        &mut self,
        name: &str,
        parent: Option<u64>,
        counter: Option<CounterDescriptor>,
    ) -> Result<u64, OutputError> {
        self.tracks += 1;
        let track = self.tracks;
        self.packet(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(track),
                name: Some(name.to_owned()),
                parent_uuid: parent,
                counter,
            }),
            ..TracePacket::default()
        })?;
        Ok(track)
    }

    fn event(
        &mut self,
        at: u64,
        track: u64,
        kind: Kind,
        event: TrackEvent,
    ) -> Result<(), OutputError> {
        self.packet(TracePacket {
            timestamp: Some(at),
            track_event: Some(TrackEvent {
                track_uuid: Some(track),
                r#type: Some(kind.into()),
                ..event
            }),
            ..TracePacket::default()
        })
    }
}

fn nanos(time: Time) -> u64 {
    time.since(Time::ZERO).as_nanos()
}

fn bytes() -> CounterDescriptor {
    CounterDescriptor {
        unit: Some(Unit::SizeBytes.into()),
        unit_name: None,
    }
}

fn named(unit: &str) -> CounterDescriptor {
    CounterDescriptor {
        unit: None,
        unit_name: Some(unit.to_owned()),
    }
}

fn count() -> CounterDescriptor {
    CounterDescriptor {
        unit: Some(Unit::Count.into()),
        unit_name: None,
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        string_value: None,
    }
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: None,
        string_value: Some(value.to_owned()),
    }
}

impl PerfettoTrace {
    /// Opens a file for the trace of a run in which these things happen at these times: faults and changes.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(
        path: impl Into<PathBuf>,
        instants: &[(Time, String)],
    ) -> Result<Self, OutputError> {
        let path = path.into();
        let file = BufWriter::new(StagedFile::create(&path)?);
        let mut writer = Writer {
            file,
            path,
            tracks: 0,
        };
        if !instants.is_empty() {
            let track = writer.track("faults and changes", None, None)?;
            for (at, name) in instants {
                let event = TrackEvent {
                    name: Some(name.clone()),
                    ..TrackEvent::default()
                };
                writer.event(nanos(*at), track, Kind::Instant, event)?;
            }
        }
        Ok(Self {
            writer,
            counters: HashMap::new(),
            flows: Vec::new(),
        })
    }

    /// Writes the flows of a run that has ended at `end`, moves the file to its final name, and returns its path.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    pub fn finish(mut self, end: Time) -> Result<PathBuf, OutputError> {
        let run_end = nanos(end);
        for (group, mut slices) in std::mem::take(&mut self.flows) {
            let parent = self
                .writer
                .track(&format!("flows of {group}"), None, None)?;
            slices.sort_by_key(|slice| (slice.begin, slice.end.unwrap_or(run_end)));
            let mut lanes = Lanes::default();
            let mut tracks: Vec<u64> = Vec::new();
            for slice in slices {
                let end = slice.end.unwrap_or(run_end).max(slice.begin);
                let lane = lanes.place(slice.begin, end);
                if tracks.len() <= lane {
                    tracks.push(self.writer.track(&group, Some(parent), None)?);
                }
                if let Some(track) = tracks.get(lane) {
                    self.slice(*track, slice, end)?;
                }
            }
        }
        let path = self.writer.path;
        let file = self.writer.file.into_inner();
        let file = file.map_err(|error| OutputError::writing(&path)(error.into_error()))?;
        file.persist()
    }

    fn slice(&mut self, track: u64, slice: Slice, end: u64) -> Result<(), OutputError> {
        let event = TrackEvent {
            name: Some(slice.name),
            debug_annotations: slice.values,
            ..TrackEvent::default()
        };
        let writer = &mut self.writer;
        writer.event(slice.begin, track, Kind::SliceBegin, event)?;
        writer.event(end, track, Kind::SliceEnd, TrackEvent::default())
    }

    /// Adds a value of a counter, whose track is named by what it counts.
    fn counter(
        &mut self,
        at: Time,
        name: String,
        unit: impl FnOnce() -> CounterDescriptor,
        value: u64,
    ) -> Result<(), OutputError> {
        let track = match self.counters.get(&name) {
            Some(track) => *track,
            None => {
                let track = self.writer.track(&name, None, Some(unit()))?;
                self.counters.insert(name, track);
                track
            }
        };
        let event = TrackEvent {
            counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
            ..TrackEvent::default()
        };
        self.writer.event(nanos(at), track, Kind::Counter, event)
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        let PortSample { time, port, .. } = *sample;
        let drops = sample.drops.by_reason();
        let drops = drops.iter().map(|(_, count)| count).sum();
        self.counter(time, format!("{port}: queue"), bytes, sample.queue.bytes())?;
        self.counter(time, format!("{port}: marks"), count, sample.marks)?;
        self.counter(time, format!("{port}: drops"), count, drops)
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        let GroupSample { time, group, .. } = *sample;
        let goodput = sample.goodput.bits_per_second();
        self.counter(
            time,
            format!("{group}: goodput"),
            || named("bit/s"),
            goodput,
        )?;
        match sample.window.map(ByteSize::bytes) {
            Some(window) => self.counter(time, format!("{group}: window"), bytes, window),
            None => Ok(()),
        }
    }

    fn flow(&mut self, record: &FlowRecord<'_>) {
        let mut values = vec![
            text("source", record.source),
            text("destination", record.destination),
            number("delivered (bytes)", record.counters.delivered.bytes()),
            number(
                "retransmitted (bytes)",
                record.counters.retransmitted.bytes(),
            ),
            number("marks", record.counters.marks),
            number("time-outs", record.counters.timeouts),
        ];
        if record.end.is_none() {
            values.push(text("end", "open at the end of the run"));
        }
        let slice = Slice {
            begin: nanos(record.start),
            end: record.end.map(nanos),
            name: format!("{}/{}", record.group, record.index),
            values,
        };
        let mut groups = self.flows.iter_mut();
        match groups.find(|(group, _)| group == record.group) {
            Some((_, slices)) => slices.push(slice),
            None => self.flows.push((record.group.to_owned(), vec![slice])),
        }
    }
}

impl Recorder for PerfettoTrace {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Port(sample) => self.port(&sample),
            Observation::Group(sample) => self.group(&sample),
            Observation::Flow(record) => {
                self.flow(&record);
                Ok(())
            }
            Observation::Epoch(_)
            | Observation::FlowSample(_)
            | Observation::Packet(..)
            | Observation::Frame(..) => Ok(()),
        }
    }
}
