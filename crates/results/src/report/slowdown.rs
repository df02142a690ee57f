//! The plot of slowdowns over the size of transfers.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::Escaped;
use super::plot::Size;
use crate::summary::{SIZE_NAMES, size_range};
use crate::{Ratio, RunSummary, SlowdownStatistics};

/// A line: its label and colour, whether it is dashed, and its points: the position of the size and the slowdown.
struct Line {
    label: String,
    colour: usize,
    dashed: bool,
    points: Vec<(usize, f64)>,
}

/// The number of colours in the page's style sheet.
const COLOURS: usize = 8;
/// The least distance of two labels, in pixels.
const LABEL_HEIGHT: f64 = 13.0;

/// A plot of a run: the sizes from left to right, and the slowdown on a logarithmic axis that begins at 1.
struct SlowdownPlot {
    sizes: Vec<&'static str>,
    lines: Vec<Line>,
    /// The upper end of the axis.
    highest: f64,
    width: f64,
    height: f64,
}

/// The space around the plot, in pixels.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 122.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 36.0;

/// Draws the medians and the 99th percentiles of a run's groups; nothing if no transfer with a size is complete.
pub(super) fn draw(out: &mut String, run: &RunSummary, size: Size) {
    let Some(plot) = SlowdownPlot::of(run, size) else {
        return;
    };
    plot.write(out);
    let unfinished: u64 = (run.groups.values())
        .filter_map(|group| Some(group.slowdown.as_ref()?.all.unfinished))
        .sum();
    let censored = match unfinished {
        0 => String::new(),
        count => format!(" Without {count} unfinished transfers."),
    };
    let _ = writeln!(
        out,
        "<figcaption>Completion time divided by that on the empty network. Line: median; dashed: 99th percentile.\
         {censored}</figcaption></figure>"
    );
}

impl SlowdownPlot {
    fn of(run: &RunSummary, size: Size) -> Option<Self> {
        let slowdowns = run.groups.iter().enumerate();
        let slowdowns = slowdowns
            .filter_map(|(index, (name, group))| Some((index, name, group.slowdown.as_ref()?)));
        let slowdowns: Vec<_> = slowdowns.collect();
        let has = |name: &str| {
            let mut groups = slowdowns.iter();
            groups.any(|(_, _, found)| found.sizes.contains_key(name))
        };
        let sizes: Vec<&str> = SIZE_NAMES.into_iter().filter(|name| has(name)).collect();
        let line = |of: &IndexMap<String, SlowdownStatistics>,
                    value: fn(&SlowdownStatistics) -> Option<Ratio>| {
            let points = sizes.iter().enumerate().filter_map(|(position, name)| {
                let slowdown = value(of.get(*name)?)?;
                Some((position, slowdown.value()))
            });
            points.collect::<Vec<_>>()
        };
        let lines = slowdowns.iter().flat_map(|(index, name, found)| {
            let line = |what: &str, dashed, value| Line {
                label: format!("{name} {what}"),
                colour: index % COLOURS,
                dashed,
                points: line(&found.sizes, value),
            };
            [
                line("p50", false, |part| part.p50),
                line("p99", true, |part| part.p99),
            ]
        });
        let lines: Vec<Line> = lines.filter(|line| !line.points.is_empty()).collect();
        let values = lines.iter().flat_map(|line| &line.points);
        let highest = values.map(|(_, value)| *value).fold(1.0, f64::max);
        let (width, height) = match size {
            Size::Wide => (1000.0, 280.0),
            Size::Small => (480.0, 190.0),
        };
        (!lines.is_empty()).then(|| Self {
            highest: ticks()
                .find(|tick| *tick >= highest)
                .unwrap_or(highest)
                .max(2.0),
            sizes,
            lines,
            width,
            height,
        })
    }

    fn x(&self, position: usize) -> f64 {
        let across = self.width - LEFT - RIGHT;
        LEFT + across * (position as f64 + 0.5) / self.sizes.len().max(1) as f64
    }

    fn y(&self, slowdown: f64) -> f64 {
        let part = slowdown.max(1.0).ln() / self.highest.ln();
        self.height - BOTTOM - (self.height - BOTTOM - TOP) * part.clamp(0.0, 1.0)
    }

    fn write(&self, out: &mut String) {
        let (width, height, right) = (self.width, self.height, self.width - RIGHT);
        let _ = writeln!(
            out,
            "<figure><svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"Slowdown by size\">"
        );
        for tick in ticks().take_while(|tick| *tick <= self.highest) {
            let y = self.y(tick);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (position, name) in self.sizes.iter().enumerate() {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.x(position),
                height - BOTTOM + 17.0,
                size_range(name)
            );
        }
        for line in &self.lines {
            self.line(out, line);
        }
        self.labels(out);
        out.push_str("</svg>");
    }

    fn line(&self, out: &mut String, line: &Line) {
        let points = line.points.iter();
        let points = points.map(|(position, value)| (self.x(*position), self.y(*value)));
        let points: Vec<_> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (colour, dashed) = (line.colour, if line.dashed { " second" } else { "" });
        let _ = writeln!(
            out,
            "<polyline class=\"line s{colour}{dashed}\" points=\"{}\"/>",
            points.join(" ")
        );
        // A size alone is no line.
        for (position, value) in &line.points {
            let _ = writeln!(
                out,
                "<circle class=\"band s{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{}: {value:.2}</title></circle>",
                self.x(*position),
                self.y(*value),
                Escaped(&line.label)
            );
        }
    }

    /// Writes the labels on the right, from the top down, without overlap.
    fn labels(&self, out: &mut String) {
        let end = |line: &Line| line.points.last().map_or(TOP, |(_, value)| self.y(*value));
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|one, other| end(one).total_cmp(&end(other)));
        let mut free = f64::MIN;
        for line in lines {
            let y = end(line).max(free);
            free = y + LABEL_HEIGHT;
            let _ = writeln!(
                out,
                "<text class=\"note s{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                line.colour,
                self.width - RIGHT + 10.0,
                y + 4.0,
                Escaped(&line.label)
            );
        }
    }
}

/// Returns 1, 2, 5, 10, 20 and so on.
fn ticks() -> impl Iterator<Item = f64> {
    let powers = (0..9).map(|power| 10_f64.powi(power));
    powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * power))
}
