//! The chart of missed deadlines, with the minimum that any schedule must miss.

use std::fmt::Write as _;

use super::Escaped;
use crate::Summary;
use crate::overview::OWN;
use crate::quantity::percent;
use crate::ratio::Ratio;

/// A bar of the chart.
#[derive(Debug)]
struct Bar {
    name: String,
    transfers: u64,
    missed: u64,
    /// The minimum number of misses, where it is known.
    fewest: Option<u64>,
}

/// The picture in pixels: width, row height, left end of the bars, and their right end if all were
/// missed.
const WIDTH: u32 = 1000;
const ROW: u32 = 22;
const LEFT: u32 = 260;
const RIGHT: u32 = 760;

/// Draws a bar for each run, and for each port if there are several, if there are deadlines.
pub(super) fn draw(out: &mut String, summary: &Summary) {
    let bars = bars(summary);
    if bars.is_empty() {
        return;
    }
    let height = bars.len() as u32 * ROW + 4;
    let _ = write!(
        out,
        "<h2>Deadlines missed</h2>\n<figure><svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"Deadlines missed\">"
    );
    for (row, bar) in (0..).zip(&bars) {
        bar.draw(out, row * ROW + 2);
    }
    out.push_str("</svg>");
    if bars.iter().any(|bar| bar.fewest.is_some()) {
        out.push_str(
            "<figcaption>Upright: what any schedule must miss (Moore\u{2013}Hodgson).</figcaption>",
        );
    }
    out.push_str("</figure>\n");
}

fn bars(summary: &Summary) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (name, run) in summary.runs() {
        let Some(deadlines) = &run.deadlines else {
            continue;
        };
        let run_name = name.unwrap_or(if summary.variants.is_empty() {
            "all"
        } else {
            OWN
        });
        bars.push(Bar {
            name: run_name.to_owned(),
            transfers: deadlines.transfers,
            missed: deadlines.missed,
            fewest: deadlines.fewest_missed,
        });
        let ports = deadlines.ports.iter();
        bars.extend(ports.map(|(port, deadlines)| Bar {
            name: format!("\u{2013} {port}"),
            transfers: deadlines.transfers,
            missed: deadlines.missed,
            fewest: Some(deadlines.fewest_missed),
        }));
    }
    bars
}

impl Bar {
    fn draw(&self, out: &mut String, top: u32) {
        let across = f64::from(RIGHT - LEFT);
        let reach = |count: u64| across * count as f64 / self.transfers.max(1) as f64;
        let (middle, thickness) = (top + ROW / 2 + 4, ROW - 8);
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\" class=\"note\">{}</text>\
             <rect class=\"track\" x=\"{LEFT}\" y=\"{}\" width=\"{across}\" height=\"{thickness}\"/>\
             <rect class=\"bar\" x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"{thickness}\"/>",
            LEFT - 8,
            Escaped(&self.name),
            top + 4,
            top + 4,
            reach(self.missed),
        );
        if let Some(fewest) = self.fewest {
            let x = f64::from(LEFT) + reach(fewest);
            let _ = write!(
                out,
                "<line class=\"optimum\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>",
                top + 1,
                top + ROW - 1
            );
        }
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{middle}\">{}</text>",
            RIGHT + 8,
            self.figures()
        );
    }

    fn figures(&self) -> String {
        let part = percent(Ratio::of(self.missed, self.transfers));
        let at_least = self
            .fewest
            .map_or_else(String::new, |fewest| format!(", {fewest} at least"));
        format!("{part} ({} of {}{at_least})", self.missed, self.transfers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeadlineSummary, PortDeadlines, RunSummary};

    #[test]
    fn runs_and_their_ports_have_bars_and_optima() {
        let deadlines = DeadlineSummary {
            transfers: 100,
            missed: 50,
            fewest_missed: Some(10),
            ports: [(
                "<a>".to_owned(),
                PortDeadlines {
                    transfers: 20,
                    missed: 20,
                    fewest_missed: 0,
                },
            )]
            .into(),
            ..DeadlineSummary::default()
        };
        let run = RunSummary {
            deadlines: Some(deadlines),
            ..RunSummary::default()
        };
        let mut page = String::new();
        draw(&mut page, &Summary::new("title", "source", run));
        assert!(page.contains("50 of 100, 10 at least"), "{page}");
        assert!(
            page.contains("&lt;a&gt;") && page.contains("20 of 20, 0 at least"),
            "{page}"
        );
        // Half of the full length, and a tenth of it.
        assert!(
            page.contains("width=\"250.0\"") && page.contains("x1=\"310.0\""),
            "{page}"
        );
    }

    #[test]
    fn without_deadlines_no_figure_is_drawn() {
        let mut page = String::new();
        draw(
            &mut page,
            &Summary::new("title", "source", RunSummary::default()),
        );
        assert_eq!(page, "");
    }
}
