use weir_counters::FlowCounters;
use weir_units::{Duration, Rate, Time};

use super::*;
use crate::{ChangeRecord, Drops, FlowSample, GroupSample, GroupSummary, PortSample, PortSummary};

const SPAN: Duration = Duration::from_secs(10);
const HOSTILE: &str = "</title><script>alert('1')</script>\"&";

fn summary(name: &str) -> Summary {
    let run = RunSummary {
        simulated: SPAN,
        warm_up: Duration::from_secs(1),
        settings: [(name.to_owned(), name.to_owned())].into(),
        groups: [(name.to_owned(), GroupSummary::default())].into(),
        ports: [(name.to_owned(), PortSummary::default())].into(),
        ..RunSummary::default()
    };
    Summary::new(name, name, run)
}

/// 100 Mbps, and a queue that is 30 KB long except at one sample.
fn traces(name: &str) -> Traces {
    let mut traces = Traces::new(SPAN);
    for number in 1..=1000_u64 {
        let time = Time::from_nanos(number * 10_000_000);
        traces.group(&GroupSample {
            time,
            group: name,
            counters: FlowCounters {
                delivered: ByteSize::from_bytes(number * 125_000),
                ..FlowCounters::ZERO
            },
            goodput: Rate::ZERO,
            window: None,
        });
        traces.port(&PortSample {
            time,
            port: name,
            queue: ByteSize::from_bytes(if number == 500 { 90_000 } else { 30_000 }),
            queue_packets: 0,
            sent: ByteSize::ZERO,
            marks: 0,
            drops: Drops::default(),
        });
    }
    traces
}

fn page(summary: &Summary, traces: &Traces, name: &str) -> String {
    let threshold = |queue| Threshold {
        name: name.to_owned(),
        queue: ByteSize::from_bytes(queue),
        from: Time::ZERO,
        until: None,
    };
    let plots = RunPlots {
        traces,
        thresholds: [(
            name.to_owned(),
            vec![threshold(65_000), threshold(9_000_000)],
        )]
        .into(),
        values: &[],
    };
    let report = Report {
        summary,
        parameters: &[(name.to_owned(), name.to_owned())],
        runs: vec![plots; 1 + summary.variants.len()],
    };
    report.to_html()
}

/// The data of a page's figures.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"figures-data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// The numbers of a line.
fn numbers(text: &serde_json::Value) -> Vec<f32> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap());
    let bytes = bytes.unwrap();
    let numbers = bytes.chunks_exact(4);
    numbers
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// The figures of a section with this id.
fn figure<'d>(data: &'d serde_json::Value, section: usize, id: &str) -> &'d serde_json::Value {
    let figures = data["sections"][section]["figures"].as_array().unwrap();
    let mut found = figures.iter().filter(|figure| figure["id"] == id);
    found.next().unwrap_or_else(|| panic!("no {id}: {data}"))
}

#[test]
fn a_page_has_no_external_references() {
    let mut summary = summary("a");
    summary.variants.insert("b".to_owned(), summary.run.clone());
    let page = page(&summary, &traces("a"), "a");
    for outside in ["http:", "https:", " src=", " href=", "@import", "//cdn"] {
        let mut found = page.match_indices(outside);
        let allowed = ["http://www.w3.org/", "https://opensource.org/"];
        assert!(
            found.all(|(at, _)| allowed.iter().any(|name| page[at..].starts_with(name))),
            "{outside}"
        );
    }
    assert!(page.starts_with("<!doctype html>"));
    assert!(
        page.contains("prefers-color-scheme:dark") || page.contains("prefers-color-scheme: dark")
    );
    // Each run has its figures.
    let data = data(&page);
    let titles: Vec<_> = (data["sections"].as_array().unwrap().iter())
        .map(|section| section["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["as in the file", "b"]);
    for section in 0..2 {
        for id in ["queue", "goodput"] {
            let lines = figure(&data, section, id)["lines"].as_array().unwrap();
            assert_eq!(lines.len(), 1, "{id}");
        }
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    let page = || page(&summary("a"), &traces("a"), "a");
    assert_eq!(page(), page());
}

#[test]
fn flows_have_lines_of_their_own() {
    let mut traces = traces("a");
    for number in 1..=1000_u64 {
        for index in 0..2 {
            traces.flow_sample(&FlowSample {
                time: Time::from_nanos(number * 10_000_000),
                group: "a",
                index,
                source: "s",
                destination: "d",
                counters: FlowCounters {
                    delivered: ByteSize::from_bytes(number * (2 - index) * 1_000),
                    ..FlowCounters::ZERO
                },
                window: Some(ByteSize::from_bytes(number)),
                smoothed_rtt: Some(Duration::from_micros(number)),
            });
        }
    }
    let data = data(&page(&summary("a"), &traces, "a"));
    // The slower one comes first.
    assert_eq!(data["flows"]["names"], serde_json::json!(["a 1", "a 0"]));
    for id in ["flow-window", "flow-goodput", "flow-rtt"] {
        let figure = figure(&data, 0, id);
        assert_eq!(figure["of"], "flows");
        assert_eq!(figure["lines"].as_array().unwrap().len(), 2, "{id}");
    }
    let rtt = &figure(&data, 0, "flow-rtt")["lines"][0];
    let greatest = *numbers(&rtt["high"]).last().unwrap();
    assert!((greatest - 1e-3).abs() < 1e-9, "{greatest}");
}

#[test]
fn names_from_a_file_are_escaped() {
    let mut summary = summary(HOSTILE);
    summary.run.interrupted = true;
    let variant = summary.run.clone();
    summary.variants.insert(HOSTILE.to_owned(), variant);
    let page = page(&summary, &traces(HOSTILE), HOSTILE);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains(HOSTILE));
    // The figures' data and the script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert_eq!(page.matches("</title>").count(), 1);
    let data = data(&page);
    assert_eq!(data["ports"]["names"][0], HOSTILE);
    assert_eq!(data["groups"]["names"][0], HOSTILE);
    assert_eq!(figure(&data, 0, "queue")["levels"][0]["label"], HOSTILE);
}

#[test]
fn a_short_peak_is_in_the_band() {
    let data = data(&page(&summary("a"), &traces("a"), "a"));
    let line = &figure(&data, 0, "queue")["lines"][0];
    let mut highest = numbers(&line["high"]);
    highest.sort_by(f32::total_cmp);
    highest.dedup();
    assert_eq!(highest, [30_000.0, 90_000.0]);
    // Everywhere the same.
    assert_eq!(line["low"], 30_000.0);
}

#[test]
fn thresholds_are_levels_of_their_port() {
    let data = data(&page(&summary("a"), &traces("a"), "a"));
    let levels = figure(&data, 0, "queue")["levels"].as_array().unwrap();
    let values: Vec<_> = levels.iter().map(|level| &level["value"]).collect();
    assert_eq!(values, [65_000.0, 9_000_000.0]);
    assert_eq!(levels[0]["of"], 0);
}

#[test]
fn windows_marks_and_drops_have_figures() {
    let mut traces = traces("a");
    for number in 1..=1000_u64 {
        let time = Time::from_nanos(number * 10_000_000);
        traces.group(&GroupSample {
            time,
            group: "w",
            counters: FlowCounters::ZERO,
            goodput: Rate::ZERO,
            window: Some(ByteSize::from_bytes(number)),
        });
        traces.port(&PortSample {
            time,
            port: "m",
            queue: ByteSize::ZERO,
            queue_packets: 0,
            sent: ByteSize::ZERO,
            marks: number * number,
            drops: Drops {
                tail: number / 500,
                ..Drops::default()
            },
        });
    }
    let data = data(&page(&summary("a"), &traces, "a"));
    let windows = &figure(&data, 0, "window")["lines"][0];
    assert!(numbers(&windows["y"]).len() > 400 && windows["high"].is_string());
    let of = |id| figure(&data, 0, id)["lines"].as_array().unwrap();
    assert_eq!((of("marks").len(), of("drops").len()), (2, 2));
    let marks = of("marks").iter().find(|line| line["y"].is_string());
    let marks = numbers(&marks.unwrap()["y"]);
    // From one to two thousand in 10 ms.
    assert!(
        marks[0] < 1_000.0 && *marks.last().unwrap() > 190_000.0,
        "{marks:?}"
    );
    let none = page(&summary("a"), &super::Traces::new(SPAN), "a");
    assert!(!none.contains("\"marks\""));
}

#[test]
fn lines_that_coincide_are_all_there() {
    let mut traces = Traces::new(SPAN);
    for number in 1..=1000_u64 {
        for group in ["one", "two", "three"] {
            traces.group(&GroupSample {
                time: Time::from_nanos(number * 10_000_000),
                group,
                counters: FlowCounters {
                    delivered: ByteSize::from_bytes(number * number * 100),
                    ..FlowCounters::ZERO
                },
                goodput: Rate::ZERO,
                window: None,
            });
        }
    }
    let data = data(&page(&summary("a"), &traces, "a"));
    let lines = figure(&data, 0, "goodput")["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!((&line["y"], &line["x"]), (&lines[0]["y"], &lines[0]["x"]));
    }
    let mut of: Vec<_> = lines
        .iter()
        .map(|line| line["of"].as_u64().unwrap())
        .collect();
    of.dedup();
    assert_eq!(of.len(), 3);
}

#[test]
fn two_thousand_groups_and_64_ports_fit_the_worst_ones_first() {
    let groups: Vec<String> = (0..2_000)
        .map(|number| format!("group-{number:04}"))
        .collect();
    let ports: Vec<String> = (0..64)
        .map(|number| format!("leaf{number}->spine"))
        .collect();
    let mut traces = Traces::new(SPAN);
    for number in 1..=240_u64 {
        let time = Time::from_nanos(number * 40_000_000);
        for (index, group) in (0..).zip(&groups) {
            traces.group(&GroupSample {
                time,
                group,
                counters: FlowCounters {
                    delivered: ByteSize::from_bytes(
                        (number * 7919 + index) % 1_000 + number * 2_000,
                    ),
                    ..FlowCounters::ZERO
                },
                goodput: Rate::ZERO,
                window: Some(ByteSize::from_bytes(1_500 + (number * 31 + index) % 97)),
            });
        }
        for (index, port) in (0..).zip(&ports) {
            for half in 0..2 {
                traces.port(&PortSample {
                    time: Time::from_nanos(number * 40_000_000 + half),
                    port,
                    queue: ByteSize::from_bytes((number * 7919 + index + half * 77) % 90_000),
                    queue_packets: 0,
                    sent: ByteSize::ZERO,
                    marks: number * (index + 1),
                    drops: Drops::default(),
                });
            }
        }
    }
    let mut summary = summary("a");
    summary.run.groups.clear();
    for (index, group) in (0..).zip(&groups) {
        let of_group = GroupSummary {
            goodput: Rate::from_mbps(5_000 - index),
            unfinished: 1,
            ..GroupSummary::default()
        };
        summary.run.groups.insert(group.clone(), of_group);
    }
    summary.run.ports.clear();
    for (index, port) in (0..).zip(&ports) {
        let of_port = PortSummary {
            queue_mean: ByteSize::from_bytes(index * 100),
            ..PortSummary::default()
        };
        summary.run.ports.insert(port.clone(), of_port);
    }
    let page = page(&summary, &traces, "a");
    assert!(page.len() <= 2_000_000, "{}", page.len());
    assert!(page.len() > 500_000, "{}", page.len());
    // The groups with the least goodput come first, in the tables and in the figures.
    let data = data(&page);
    assert_eq!(data["groups"]["names"][0], "group-1999");
    assert_eq!(data["ports"]["names"][0], "leaf63->spine");
    assert_eq!(data["groups"]["leftOut"], 0);
    let goodput = figure(&data, 0, "goodput")["lines"].as_array().unwrap();
    assert_eq!(goodput.len(), 2_000);
    assert!(numbers(&goodput[0]["y"]).len() > 50);
    // The greatest value, and 16 bits of each.
    let rough = goodput[1_999]["y"].as_array().unwrap();
    assert!(rough[0].as_f64().unwrap() > 0.0 && rough[1].as_str().unwrap().len() >= 40);
    assert_eq!(
        figure(&data, 0, "queue")["lines"].as_array().unwrap().len(),
        64
    );
    assert!(page.contains("<td class=\"name\">group-1999</td>"));
    assert!(!page.contains("<td class=\"name\">group-0000</td>"));
    assert!(page.contains("worst of 2000 rows"));
}

#[test]
fn missing_data_are_left_out() {
    let summary = Summary::new("title", "", RunSummary::default());
    let nothing = Traces::new(Duration::ZERO);
    for page in [
        page(&summary, &nothing, "a"),
        Report {
            summary: &summary,
            parameters: &[],
            runs: Vec::new(),
        }
        .to_html(),
    ] {
        let data = data(&page);
        let figures = data["sections"].as_array().unwrap().iter();
        let mut figures = figures.flat_map(|section| section["figures"].as_array().unwrap());
        assert!(figures.next().is_none() && page.ends_with("</html>\n"));
    }
}

#[test]
fn pages_of_long_runs_are_small() {
    let mut traces = Traces::new(SPAN);
    for number in 0..200_000_u64 {
        traces.port(&PortSample {
            time: Time::from_nanos(number * 50_000),
            port: "p",
            queue: ByteSize::from_bytes(number % 1000),
            queue_packets: 0,
            sent: ByteSize::ZERO,
            marks: 0,
            drops: Drops::default(),
        });
    }
    // Beside the style and the script, which are 100 KB.
    assert!(page(&summary("a"), &traces, "a").len() < 150_000);
}

#[test]
fn changes_are_named_and_marked_in_plots_over_time() {
    let mut summary = summary("a");
    summary.run.changes = vec![ChangeRecord {
        at: Duration::from_millis(20),
        of: ["p1", "p2", "p3", "p4", "p5"].map(str::to_owned).into(),
        set: [("queue.ecn_threshold".to_owned(), "30 packets".to_owned())].into(),
    }];
    let text = "at 20ms: queue.ecn_threshold = 30 packets of p1, p2, p3 and 2 more";
    let page = page(&summary, &traces("a"), "a");
    assert!(
        page.contains(&format!("<p class=\"aside\">{text}.</p>")),
        "{page}"
    );
    let changes = &data(&page)["sections"][0]["changes"];
    assert_eq!(changes[0]["at"], 0.02);
    assert_eq!(changes[0]["text"], text);
    assert!(summary.to_text().contains(text));
    let json = summary.to_json().unwrap();
    assert_eq!(crate::Summary::from_json(&json).unwrap(), summary);
}
