//! A chart of a few lines, whose axes its caller divides: sizes, logarithmic times and slowdowns.

use std::fmt::Write as _;

use super::html::Escaped;
use super::plot::{Area, Label, Size, write_labels};

/// The most lines that are labelled at their ends; more of them have a legend.
const MOST_LABELS: usize = 10;

/// A chart. Positions are fractions of an axis, from 0 on the left or at the bottom to 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Chart {
    /// Its title, for screen readers.
    pub(super) title: String,
    pub(super) across: Vec<Tick>,
    /// The name of the horizontal axis.
    pub(super) across_name: String,
    pub(super) up: Vec<Tick>,
    /// The name of the vertical axis.
    pub(super) up_name: String,
    pub(super) lines: Vec<Line>,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) text: String,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) label: String,
    /// An index into the page's colours.
    pub(super) colour: usize,
    pub(super) is_dashed: bool,
    /// Whether its points are marked: there are few, and what lies between them was not measured.
    pub(super) has_dots: bool,
    pub(super) points: Vec<Point>,
}

/// A point of a line, and its value in words.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) text: String,
    /// The ends of a bar through it.
    pub(super) ends: Option<(f64, f64)>,
}

// Writing to a string cannot fail.
impl Chart {
    /// Writes the chart, with a legend in front of it if it has many lines.
    pub(super) fn write(&self, out: &mut String, size: Size) {
        if self.lines.len() > MOST_LABELS {
            self.legend(out);
        }
        let area = size.area();
        let _ = writeln!(
            out,
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
            area.width,
            area.height,
            Escaped(&self.title)
        );
        self.axes(out, &area);
        for line in &self.lines {
            line.write(out, &area);
        }
        if (2..=MOST_LABELS).contains(&self.lines.len()) {
            let labels = self.lines.iter().filter_map(|line| line.end_label(&area));
            write_labels(out, &area, labels.collect());
        }
        out.push_str("</svg>\n");
    }

    fn legend(&self, out: &mut String) {
        out.push_str("<ul class=\"legend\">");
        for line in self.lines.iter().filter(|line| !line.is_dashed) {
            let (colour, label) = (line.colour, Escaped(&line.label));
            let _ = write!(out, "<li><i class=\"s{colour}\"></i>{label}</li>");
        }
        out.push_str("</ul>\n");
    }

    fn axes(&self, out: &mut String, area: &Area) {
        let Area {
            left,
            right,
            top,
            bottom,
            ..
        } = *area;
        for tick in &self.up {
            let y = area.y(tick.at);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                Escaped(&tick.text),
            );
        }
        for tick in &self.across {
            let x = area.x(tick.at);
            let _ = writeln!(
                out,
                "<line class=\"mark\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 17.0,
                Escaped(&tick.text),
            );
        }
        let _ = writeln!(
            out,
            "<line class=\"mark\" x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\
             <text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text class=\"unit\" transform=\"translate(13 {:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            (left + right) / 2.0,
            bottom + 33.0,
            Escaped(&self.across_name),
            (top + bottom) / 2.0,
            Escaped(&self.up_name),
        );
    }
}

impl Line {
    fn write(&self, out: &mut String, area: &Area) {
        let (colour, dashed) = (self.colour, if self.is_dashed { " second" } else { "" });
        let points = self.points.iter();
        let places: Vec<String> = points
            .map(|point| format!("{:.1},{:.1}", area.x(point.x), area.y(point.y)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline class=\"line s{colour}{dashed}\" points=\"{}\"/>",
            places.join(" ")
        );
        for point in &self.points {
            if let Some((low, high)) = point.ends {
                let (x, low, high) = (area.x(point.x), area.y(low), area.y(high));
                let _ = writeln!(
                    out,
                    "<line class=\"s{colour}\" x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\"/>"
                );
            }
        }
        for point in self.points.iter().filter(|_| self.has_dots) {
            let _ = writeln!(
                out,
                "<circle class=\"dot s{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {}</title></circle>",
                area.x(point.x),
                area.y(point.y),
                Escaped(&self.label),
                Escaped(&point.text)
            );
        }
    }

    fn end_label(&self, area: &Area) -> Option<Label> {
        Some(Label {
            y: area.y(self.points.last()?.y),
            class: format!("s{}", self.colour),
            text: self.label.clone(),
        })
    }
}

/// A logarithmic axis between two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogAxis {
    from: f64,
    to: f64,
}

impl LogAxis {
    /// Returns an axis from the 1, 2 or 5 times a power of ten at or below `least` to that at or above `most`. Both
    /// are above zero.
    pub(super) fn around(least: f64, most: f64) -> Self {
        let from = steps(least).rfind(|step| *step <= least * (1.0 + 1e-9));
        let to = steps(most).find(|step| *step >= most * (1.0 - 1e-9));
        let (from, to) = (from.unwrap_or(least), to.unwrap_or(most));
        Self {
            from,
            // An axis without an extent has no positions.
            to: to.max(from * 2.0),
        }
    }

    /// Returns the position of a value; values beyond an end are at that end.
    pub(super) fn at(self, value: f64) -> f64 {
        ((value / self.from).ln() / (self.to / self.from).ln()).clamp(0.0, 1.0)
    }

    /// Returns marks with these texts: at 1, 2 and 5 times the powers of ten, or at these alone over three of them.
    pub(super) fn ticks(self, text: impl Fn(f64) -> String) -> Vec<Tick> {
        let is_long = self.to / self.from > 1e3;
        let digits: &[f64] = if is_long { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let lowest = self.from.log10().floor() as i32;
        let highest = self.to.log10().ceil() as i32;
        let values = (lowest..=highest)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        let within =
            |value: &f64| (self.from * (1.0 - 1e-9)..=self.to * (1.0 + 1e-9)).contains(value);
        values
            .filter(within)
            .map(|value| Tick {
                at: self.at(value),
                text: text(value),
            })
            .collect()
    }
}

/// Returns 1, 2 and 5 times the powers of ten around a value.
fn steps(value: f64) -> impl DoubleEndedIterator<Item = f64> {
    let power = value.log10().floor();
    [-1.0, 0.0, 1.0]
        .into_iter()
        .flat_map(move |more| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powf(power + more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_ends_at_round_values() {
        let axis = LogAxis::around(1.0, 33.0);
        let ticks = axis.ticks(|value| value.to_string());
        let texts: Vec<_> = ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["1", "2", "5", "10", "20", "50"]);
        assert_eq!((ticks[0].at, ticks[5].at), (0.0, 1.0));
        assert_eq!((axis.at(0.1), axis.at(1e9)), (0.0, 1.0));
        let long = LogAxis::around(3e-6, 0.4);
        let texts: Vec<_> = (long.ticks(|value| format!("{value:.0e}")).into_iter())
            .map(|tick| tick.text)
            .collect();
        assert_eq!(texts, ["1e-5", "1e-4", "1e-3", "1e-2", "1e-1"]);
        assert_eq!(LogAxis::around(1.0, 1.0).at(2.0), 1.0);
    }

    #[test]
    fn lines_have_labels_and_dots_with_values() {
        let line = |label: &str, colour| Line {
            label: label.to_owned(),
            colour,
            has_dots: true,
            points: vec![Point {
                x: 0.5,
                y: 0.5,
                text: "1.25".to_owned(),
                ends: None,
            }],
            ..Line::default()
        };
        let chart = |lines| Chart {
            title: "<a>".to_owned(),
            lines,
            ..Chart::default()
        };
        let mut out = String::new();
        chart(vec![line("<one>", 0), line("two", 1)]).write(&mut out, Size::Wide);
        assert!(out.contains("aria-label=\"&lt;a&gt;\""), "{out}");
        assert!(out.contains("<title>&lt;one&gt;: 1.25</title>"), "{out}");
        assert!(out.contains("class=\"note s1\"") && !out.contains("legend"));
        let many = (0..12).map(|number| line(&format!("line {number}"), number % 8));
        let mut out = String::new();
        chart(many.collect()).write(&mut out, Size::Small);
        assert!(
            out.contains("<li><i class=\"s3\"></i>line 11</li>"),
            "{out}"
        );
        assert!(!out.contains("class=\"note"), "{out}");
    }
}
