use std::io;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::*;
use crate::{Drops, EpochRecord, FlowRecord, GroupSample, PortSample};

fn flow(index: u64) -> FlowRecord<'static> {
    FlowRecord {
        group: "dctcp",
        index,
        source: "sender-1",
        destination: "receiver",
        start: Time::from_nanos(1_500_000_000),
        end: index
            .is_multiple_of(2)
            .then(|| Time::from_nanos(1_750_000_000)),
        size: Some(ByteSize::from_bytes(index)),
        counters: FlowCounters {
            delivered: ByteSize::MAX,
            ..FlowCounters::ZERO
        },
        goodput: Rate::from_mbps(10),
        smoothed_rtt: Some(Duration::from_micros(50)),
        ..FlowRecord::BLANK
    }
}

fn port(nanos: u64) -> Sample<'static> {
    Sample::Port(PortSample {
        time: Time::from_nanos(nanos),
        port: "bottleneck",
        queue: ByteSize::from_kib(1),
        queue_packets: 2,
        sent: ByteSize::from_bytes(3),
        marks: 4,
        drops: Drops {
            red: 5,
            tail: 6,
            buffer: 7,
            mtu: 8,
            loss: 9,
            ..Drops::default()
        },
    })
}

fn written<R: Row>(rows: &[R]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut table = Table::new::<R>(&mut file).unwrap();
    for row in rows {
        table.push(row).unwrap();
    }
    table.finish().unwrap();
    file
}

/// Returns every row as names and values.
fn read(file: Vec<u8>) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns()).collect()
}

fn cell(row: &[(String, Field)], name: &str) -> Field {
    let cell = row.iter().find(|(column, _)| column == name);
    cell.unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

#[test]
fn flows_read_back() {
    let rows = read(written(&[flow(4), flow(5)]));
    assert_eq!(rows.len(), 2);
    let text = |text: &str| Field::Str(text.to_owned());
    let of_first = |name| cell(&rows[0], name);
    assert_eq!(of_first("group"), text("dctcp"));
    assert_eq!(of_first("index"), Field::Long(4));
    assert_eq!(of_first("source"), text("sender-1"));
    assert_eq!(of_first("start_s"), Field::Double(1.5));
    assert_eq!(of_first("completion_s"), Field::Double(0.25));
    assert_eq!(of_first("delivered_bytes"), Field::Long(i64::MAX));
    assert_eq!(of_first("goodput_bps"), Field::Long(10_000_000));
    assert_eq!(of_first("srtt_s"), Field::Double(5e-5));
    assert_eq!(of_first("min_rtt_s"), Field::Null);
    assert_eq!(cell(&rows[1], "end_s"), Field::Null);
    assert_eq!(cell(&rows[1], "completion_s"), Field::Null);
}

#[test]
fn samples_of_ports_and_groups_lie_in_one_table() {
    let group = Sample::Group(GroupSample {
        time: Time::from_nanos(1),
        group: "cubic",
        counters: FlowCounters {
            delivered: ByteSize::from_bytes(10),
            retransmits: 11,
            timeouts: 12,
            ..FlowCounters::ZERO
        },
        goodput: Rate::from_mbps(1),
        window: None,
    });
    let rows = read(written(&[port(2_500_000_000), group]));
    let long = |row: usize, name| match cell(&rows[row], name) {
        Field::Long(value) => Some(value),
        Field::Null => None,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(cell(&rows[0], "time_s"), Field::Double(2.5));
    assert_eq!(cell(&rows[1], "time_s"), Field::Double(1e-9));
    assert_eq!(cell(&rows[0], "group"), Field::Null);
    assert_eq!(cell(&rows[1], "group"), Field::Str("cubic".to_owned()));
    for (name, port, group) in [
        ("queue_bytes", Some(1024), None),
        ("queue_packets", Some(2), None),
        ("sent_bytes", Some(3), None),
        ("marks", Some(4), None),
        ("drops_red", Some(5), None),
        ("drops_tail", Some(6), None),
        ("drops_buffer", Some(7), None),
        ("drops_other", Some(17), None),
        ("delivered_bytes", None, Some(10)),
        ("goodput_bps", None, Some(1_000_000)),
        ("retransmits", None, Some(11)),
        ("timeouts", None, Some(12)),
        ("window_bytes", None, None),
    ] {
        assert_eq!((long(0, name), long(1, name)), (port, group), "{name}");
    }
}

#[test]
fn many_rows_make_several_groups_and_equal_bytes() {
    let rows: Vec<FlowRecord<'_>> = (0..2 * GROUP_ROWS as u64 + 1).map(flow).collect();
    let file = written(&rows);
    assert_eq!(file, written(&rows));
    let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    assert_eq!(reader.metadata().file_metadata().created_by(), Some("weir"));
    let indices = read(file).into_iter().map(|row| cell(&row, "index"));
    assert!(indices.eq((0..rows.len() as i64).map(Field::Long)));
}

#[test]
fn a_table_without_rows_has_columns() {
    let reader = SerializedFileReader::new(bytes::Bytes::from(written::<Sample<'_>>(&[]))).unwrap();
    let metadata = reader.metadata().file_metadata();
    assert_eq!(metadata.num_rows(), 0);
    assert_eq!(metadata.schema().get_fields().len(), 16);
}

/// Returns the columns of a file as documented, in order.
fn documented(file: &str) -> Vec<&'static str> {
    let document = include_str!("../../../../docs/results.md");
    let (_, section) = document.split_once(&format!("\n## {file}\n")).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with("## "));
    let first_cells = lines.filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let names = first_cells.flat_map(|cell| cell.split(", "));
    names.map(|name| name.trim_matches('`')).collect()
}

fn columns<R: Row>() -> Vec<&'static str> {
    R::BLANK.cells().map(|(name, _)| name).collect()
}

/// Programs that read the files rely on the names; the document lists them.
#[test]
fn the_document_lists_every_column() {
    assert_eq!(columns::<FlowRecord<'_>>(), documented("flows.parquet"));
    assert_eq!(columns::<Sample<'_>>(), documented("samples.parquet"));
    assert_eq!(columns::<EpochRecord<'_>>(), documented("epochs.parquet"));
}

/// A writer with room for this many bytes, like a disk that fills up.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        match taken {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_fills_up() {
    let rows: Vec<Sample<'_>> = (0..GROUP_ROWS as u64 + 100).map(port).collect();
    let size = written(&rows).len();
    for room in (0..size).step_by(size / 50).chain([size - 1]) {
        let written = Table::new::<Sample<'_>>(Full(room)).and_then(|mut table| {
            rows.iter().try_for_each(|row| table.push(row))?;
            table.finish()
        });
        let error = written.expect_err("there was no room");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}: {error}");
    }
}

#[test]
fn a_cell_of_another_type_is_refused() {
    let mut table = Table::new::<FlowRecord<'_>>(Vec::new()).unwrap();
    let error = table.push(&port(0)).unwrap_err();
    assert!(error.to_string().starts_with("column group does not take"));
}
