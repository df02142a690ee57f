use std::fs;
use std::path::Path;
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use weir_units::{ByteSize, Duration};

use crate::{Scenario, Workload};

const CSV: &str = "start,source,destination,size\n\
                   # The second one begins first.\n\
                   0.0015, a1, b, 3000\n\
                   1us,a2,b,1.5KB\n\
                   0.002,b,a1,1\n";

/// Loads a scenario with a group of these keys, in a folder with the file.
fn load(folder: &Path, group: &str) -> Result<Scenario, String> {
    let text = format!(
        "title = 't'\nsource = 's'\nduration = '1s'\n\
         [hosts.a]\ncount = 2\n[hosts.b]\n[switches.s]\n\
         [[links]]\nfrom = 'a'\nto = 's'\nrate = '1Gbps'\ndelay = '1us'\n\
         [[links]]\nfrom = 'b'\nto = 's'\nrate = '1Gbps'\ndelay = '1us'\n\
         [groups.g]\nfrom = ['a', 'b']\nto = ['a', 'b']\n{group}\n"
    );
    let file = folder.join("scenario.toml");
    fs::write(&file, text).unwrap();
    let loaded = Scenario::load(&file, &[]).map_err(|error| error.to_string())?;
    Ok(loaded.scenario)
}

fn of_csv(text: &str, group: &str) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.csv"), text).unwrap();
    load(folder.path(), group)
}

const TRACE: &str = "workload = { kind = 'trace', file = 'flows.csv' }";

/// Returns the flows: start in nanoseconds, source, destination, size.
fn flows(scenario: &Scenario) -> Vec<(u64, &str, &str, u64)> {
    let name = |host| &scenario.topology.host(host).name[..];
    match &scenario.groups[0].workload {
        Workload::Trace { trace } => {
            let flows = trace.flows.iter();
            flows
                .map(|flow| {
                    let (start, size) = (flow.start.as_nanos(), flow.size.bytes());
                    (start, name(flow.from), name(flow.to), size)
                })
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

const EXPECTED: [(u64, &str, &str, u64); 3] = [
    (1_000, "a2", "b", 1_500),
    (1_500_000, "a1", "b", 3_000),
    (2_000_000, "b", "a1", 1),
];

#[test]
fn a_csv_file_has_the_flows() {
    let scenario = of_csv(CSV, TRACE).unwrap();
    assert_eq!(flows(&scenario), EXPECTED);
    assert_eq!(scenario.groups[0].flow_count(), 0, "none at the start");
    let bare = CSV.split_once('\n').unwrap().1;
    assert_eq!(flows(&of_csv(bare, TRACE).unwrap()), EXPECTED);
}

#[test]
fn what_is_written_names_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.csv");
    fs::write(&file, CSV).unwrap();
    let scenario = load(folder.path(), TRACE).unwrap();
    let written = toml::to_string(&scenario).unwrap();
    let again = Scenario::parse("elsewhere/written.toml", &written, &[]);
    assert_eq!(again.unwrap().scenario, scenario);
    fs::write(&file, format!("{CSV}0.003,a1,b,1\n")).unwrap();
    let error = Scenario::parse("elsewhere/written.toml", &written, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("groups.g.workload.sha256: "), "{error}");
    assert!(error.contains("is another file: its SHA-256 is"), "{error}");
}

#[test]
fn a_mistake_in_the_file_has_its_line() {
    for (from, to, line, words) in [
        (
            "a1, b, 3000",
            "a9, b, 3000",
            3,
            "`a9` is no host of the group's `from`; these are a1, a2, b",
        ),
        (
            "a1, b, 3000",
            "a1, s, 3000",
            3,
            "`s` is no host of the group's `to`",
        ),
        (
            "a1, b, 3000",
            "b, b, 3000",
            3,
            "`b` is source and destination",
        ),
        ("3000", "0", 3, "`0` is no size of a flow; write bytes"),
        ("3000", "3.5", 3, "`3.5` is no size"),
        ("0.0015", "-1", 3, "`-1` is no start; write seconds"),
        ("1us", "1 fortnight", 4, "`1 fortnight` is no start"),
        (
            "1us,a2,b,1.5KB",
            "1us,a2,b",
            4,
            "expected start,source,destination,size",
        ),
        (CSV, "start,source,destination,size\n", 1, "no rows"),
    ] {
        let error = of_csv(&CSV.replace(from, to), TRACE).unwrap_err();
        assert!(
            error.contains("scenario.toml:21: groups.g.workload.file: "),
            "{error}"
        );
        assert!(error.contains(&format!("flows.csv:{line}: ")), "{error}");
        assert!(error.contains(words), "{words}:\n{error}");
    }
}

#[test]
fn mistakes_in_the_scenario_have_their_keys() {
    for (group, words) in [
        (
            "workload = { kind = 'trace', file = 'none.csv' }",
            "workload.file: ",
        ),
        (
            "workload = { kind = 'trace', file = '.' }",
            "this is no regular file",
        ),
        (
            "workload = { kind = 'trace', file = 'scenario.toml' }",
            "ends with `.csv` or `.parquet`",
        ),
        (
            "flows = 2\nworkload = { kind = 'trace', file = 'flows.csv' }",
            "g.flows: ",
        ),
        (
            "start_within = '1ms'\nworkload = { kind = 'trace', file = 'flows.csv' }",
            "g.start_within: ",
        ),
        (
            "pairing = 'one-to-one'\nworkload = { kind = 'trace', file = 'flows.csv' }",
            "g.pairing: ",
        ),
    ] {
        let error = of_csv(CSV, group).unwrap_err();
        assert!(error.contains(words), "{words}:\n{error}");
    }
}

#[test]
fn flows_after_the_end_are_warned_of() {
    let warnings = |text: &str| {
        let scenario = of_csv(text, TRACE).unwrap();
        let warnings = scenario.warnings().into_iter();
        warnings
            .map(|warning| warning.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings(CSV), Vec::<String>::new());
    let late = warnings(&CSV.replace("0.0015", "1.0015"));
    assert_eq!(late.len(), 1);
    assert!(late[0].contains("groups.g.workload"), "{late:?}");
    assert!(
        late[0].contains("1 of the 3 flows of the trace"),
        "{late:?}"
    );
}

/// Writes a Parquet file with the expected flows; starts are of the given type.
fn write_parquet(path: &Path, start: &str) {
    let schema = format!(
        "message flows {{ REQUIRED {start} start; REQUIRED BYTE_ARRAY source (UTF8); \
         REQUIRED BYTE_ARRAY destination (UTF8); REQUIRED INT64 size; }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = 0;
    while let Some(mut values) = group.next_column().unwrap() {
        let names = |name: fn(&(u64, &'static str, &'static str, u64)) -> &'static str| {
            EXPECTED
                .iter()
                .map(|flow| ByteArray::from(name(flow)))
                .collect::<Vec<_>>()
        };
        match column {
            0 if start == "DOUBLE" => {
                let seconds = EXPECTED.map(|flow| Duration::from_nanos(flow.0).as_secs_f64());
                values
                    .typed::<DoubleType>()
                    .write_batch(&seconds, None, None)
                    .unwrap();
            }
            0 => {
                values
                    .typed::<Int64Type>()
                    .write_batch(&[1, 2, 3], None, None)
                    .unwrap();
            }
            1 => {
                values
                    .typed::<ByteArrayType>()
                    .write_batch(&names(|flow| flow.1), None, None)
                    .unwrap();
            }
            2 => {
                values
                    .typed::<ByteArrayType>()
                    .write_batch(&names(|flow| flow.2), None, None)
                    .unwrap();
            }
            _ => {
                let sizes = EXPECTED.map(|flow| ByteSize::from_bytes(flow.3).bytes() as i64);
                values
                    .typed::<Int64Type>()
                    .write_batch(&sizes, None, None)
                    .unwrap();
            }
        }
        values.close().unwrap();
        column += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_parquet_file_has_the_flows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.parquet");
    let trace = "workload = { kind = 'trace', file = 'flows.parquet' }";
    write_parquet(&file, "DOUBLE");
    assert_eq!(flows(&load(folder.path(), trace).unwrap()), EXPECTED);
    // Is it seconds or nanoseconds?
    write_parquet(&file, "INT64");
    let error = load(folder.path(), trace).unwrap_err();
    assert!(
        error.contains("flows.parquet:1: `start` is seconds as a floating-point number"),
        "{error}"
    );
    fs::write(&file, "start,source\n").unwrap();
    let error = load(folder.path(), trace).unwrap_err();
    assert!(error.contains("groups.g.workload.file: "), "{error}");
    assert!(error.contains("flows.parquet:1: "), "{error}");
}
