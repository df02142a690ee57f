use weir_counters::FlowCounters;
use weir_units::{Duration, Rate, Time};

use super::*;
use crate::{ChangeRecord, Drops, GroupSample, GroupSummary, PortSample, PortSummary};

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

#[test]
fn a_page_has_no_external_references() {
    let mut summary = summary("a");
    summary.variants.insert("b".to_owned(), summary.run.clone());
    let page = page(&summary, &traces("a"), "a");
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        let mut found = page.match_indices(outside);
        let namespace = "http://www.w3.org/2000/svg";
        assert!(
            found.all(|(at, _)| page[at..].starts_with(namespace)),
            "{outside}"
        );
    }
    assert!(page.starts_with("<!doctype html>"));
    assert!(page.contains("prefers-color-scheme: dark"));
    // Each run alone, and both side by side.
    assert_eq!(page.matches("<svg").count(), 2 + 2 * 2);
    assert_eq!(
        page.matches("<section>").count(),
        page.matches("</section>").count()
    );
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
    assert_eq!(page.matches("<script>").count(), 1);
    let of_labels = page.matches("</title></text>").count();
    assert_eq!(page.matches("</title><").count(), of_labels);
}

#[test]
fn a_short_peak_is_visible_in_the_band() {
    let page = page(&summary("a"), &traces("a"), "a");
    let band = page.split("<polygon").nth(1).unwrap();
    let band = band
        .split("points=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let heights = band
        .split(' ')
        .map(|point| point.split_once(',').unwrap().1);
    let mut heights: Vec<f64> = heights.map(|y| y.parse().unwrap()).collect();
    heights.sort_by(f64::total_cmp);
    heights.dedup();
    // The axis goes from 0 at y = 244 to 100 KB at y = 12.
    assert_eq!(heights, [35.2, 174.4]);
}

#[test]
fn thresholds_are_drawn_or_named() {
    let page = page(&summary("a"), &traces("a"), "a");
    assert_eq!(page.matches("class=\"level\"").count(), 1);
    assert!(page.contains(">a 65.0 KB<"));
    assert!(page.contains("Far above: a 9.00 MB."));
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
        assert!(!page.contains("<svg") && !page.contains("NaN") && page.ends_with("</html>\n"));
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
    assert!(page(&summary("a"), &traces, "a").len() < 50_000);
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
    assert!(page.contains(&format!("<title>{text}</title>")));
    assert!(summary.to_text().contains(text));
    let json = summary.to_json().unwrap();
    assert_eq!(crate::Summary::from_json(&json).unwrap(), summary);
}
