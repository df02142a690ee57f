//! A plot over time, or over epochs, as SVG.

use std::fmt::Write as _;

use super::axis::Axis;
use super::html::Escaped;
use crate::quantity::{EPOCHS, Scale, TIMES, in_scale};

/// A line of a plot: seconds and values in the base unit of the plot's scale.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// An index into the page's colours.
    pub(crate) colour: usize,
    pub(crate) line: Vec<(f64, f64)>,
    /// Minimum and maximum around the line.
    pub(crate) band: Vec<(f64, f64, f64)>,
    /// Whether it belongs to the second of two experiments.
    pub(crate) is_second: bool,
}

/// The quantity of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XAxis {
    /// Seconds.
    Time,
    /// Epoch numbers.
    Epochs,
}

impl XAxis {
    const fn scale(self) -> &'static Scale {
        match self {
            Self::Time => TIMES,
            Self::Epochs => EPOCHS,
        }
    }
}

/// A value shown as a horizontal line.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Where it begins, in seconds or epochs.
    pub(crate) from: f64,
    /// Where it ends; `None` for the end of the axis.
    pub(crate) until: Option<f64>,
}

/// A time shown as a vertical line.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The time in seconds.
    pub(crate) at: f64,
    /// What happens then.
    pub(crate) text: String,
}

/// A plot: its lines and axes.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Its title, for screen readers.
    pub(crate) title: String,
    pub(crate) across: XAxis,
    pub(crate) scale: &'static Scale,
    pub(crate) series: Vec<Series>,
    pub(crate) levels: Vec<Level>,
    /// Changes of settings.
    pub(crate) marks: Vec<Mark>,
    /// The end of the horizontal axis, in seconds or epochs.
    pub(crate) end: f64,
    /// The end of the warm-up, in seconds.
    pub(crate) warm_up: f64,
    /// The minimum extent of the value axis, so that several plots are comparable.
    pub(crate) min_extent: f64,
    pub(crate) size: Size,
}

/// The size of a plot, and the amount of labels beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Alone, over the page's width.
    Wide,
    /// One of several in a row.
    Small,
}

/// The drawing area within the picture, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// Returns the place of a fraction of the horizontal axis.
    pub(super) fn x(&self, part: f64) -> f64 {
        self.left + (self.right - self.left) * part.clamp(0.0, 1.0)
    }

    /// Returns the place of a fraction of the vertical axis.
    pub(super) fn y(&self, part: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * part.clamp(0.0, 1.0)
    }
}

impl Size {
    pub(super) fn area(self) -> Area {
        let (width, height) = match self {
            Self::Wide => (1000.0, 280.0),
            Self::Small => (480.0, 190.0),
        };
        Area {
            width,
            height,
            left: 58.0,
            right: width - LABEL_WIDTH,
            top: 12.0,
            bottom: height - 36.0,
        }
    }

    const fn ticks(self) -> (u32, u32) {
        match self {
            Self::Wide => (8, 5),
            Self::Small => (5, 4),
        }
    }
}

/// The space for the labels on the right.
const LABEL_WIDTH: f64 = 122.0;
const LABEL_HEIGHT: f64 = 13.0;
const LABEL_CHARACTERS: usize = 18;

/// A label on the right.
pub(super) struct Label {
    pub(super) y: f64,
    pub(super) class: String,
    pub(super) text: String,
}

impl Plot {
    /// Returns the largest value of the series.
    pub(crate) fn largest(&self) -> f64 {
        let lines = self.series.iter().flat_map(|series| &series.line);
        let bands = self.series.iter().flat_map(|series| &series.band);
        let values = lines.map(|point| point.1).chain(bands.map(|point| point.2));
        values.fold(0.0, f64::max)
    }

    /// Returns whether a level is drawn. A level far above all values would flatten the lines.
    pub(crate) fn shows(&self, level: &Level) -> bool {
        level.value <= 2.5 * self.min_extent.max(self.largest())
    }

    /// Returns whether the plot needs a legend: there are too many lines to label each at its end.
    pub(crate) fn has_legend(&self) -> bool {
        self.series.len() > 8
    }

    /// Returns the plot as SVG.
    pub(crate) fn svg(&self) -> String {
        let levels: Vec<&Level> = self
            .levels
            .iter()
            .filter(|level| self.shows(level))
            .collect();
        let highest = levels.iter().map(|level| level.value);
        let highest = highest.fold(self.min_extent.max(self.largest()), f64::max);
        let (across, up) = self.size.ticks();
        let drawing = Drawing {
            area: self.size.area(),
            time: Axis::new(self.end, across, false, self.across.scale()),
            across: self.across,
            value: Axis::new(highest, up, true, self.scale),
        };

        let mut out = String::new();
        drawing.open(&mut out, &self.title);
        drawing.axes(&mut out, self.warm_up);
        for level in &levels {
            drawing.level(&mut out, level);
        }
        for mark in &self.marks {
            drawing.mark(&mut out, mark);
        }
        for series in &self.series {
            drawing.series(&mut out, series);
        }
        if !self.has_legend() {
            let at_end = levels.iter().filter(|level| level.until.is_none());
            let of_levels = at_end.map(|level| drawing.level_label(level, self.scale));
            let of_lines = self
                .series
                .iter()
                .filter_map(|series| drawing.line_label(series));
            let of_lines = of_lines.filter(|_| self.series.len() > 1);
            write_labels(&mut out, &drawing.area, of_levels.chain(of_lines).collect());
        }
        out.push_str("<g class=\"cursor\"></g></svg>\n");
        out
    }
}

struct Drawing {
    area: Area,
    time: Axis,
    across: XAxis,
    value: Axis,
}

// Writing to a string cannot fail.
impl Drawing {
    fn x(&self, time: f64) -> f64 {
        self.area.x(time / self.time.end)
    }

    fn y(&self, value: f64) -> f64 {
        self.area.y(value / self.value.end)
    }

    /// Writes the opening element, with the data that the script needs to show values.
    fn open(&self, out: &mut String, title: &str) {
        let Area {
            width,
            height,
            left,
            right,
            top,
            bottom,
        } = self.area;
        let (time_unit, time_name) = self.time.unit;
        let (value_unit, value_name) = self.value.unit;
        let _ = writeln!(
            out,
            "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
             data-area=\"{left} {right} {top} {bottom}\" data-x=\"{} {time_name}\" \
             data-y=\"{} {value_name}\">",
            Escaped(title),
            self.time.end / time_unit,
            self.value.end / value_unit,
        );
    }

    fn axes(&self, out: &mut String, warm_up: f64) {
        let Area {
            left,
            right,
            top,
            bottom,
            ..
        } = self.area;
        if warm_up > 0.0 {
            let _ = writeln!(
                out,
                "<rect class=\"warm-up\" x=\"{left}\" y=\"{top}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">warm-up</text>",
                self.x(warm_up) - left,
                bottom - top,
                left + 4.0,
                top + 11.0,
            );
        }
        for (value, text) in self.value.ticks() {
            let y = self.y(value);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                left - 6.0,
                y + 4.0,
            );
        }
        for (time, text) in self.time.ticks() {
            let x = self.x(time);
            let _ = writeln!(
                out,
                "<line class=\"mark\" x1=\"{x:.1}\" y1=\"{bottom}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 4.0,
                bottom + 17.0,
            );
        }
        let along = match self.across {
            XAxis::Time => format!("time in {}", self.time.unit.1),
            XAxis::Epochs => "epoch".to_owned(),
        };
        let middle = (top + bottom) / 2.0;
        let _ = writeln!(
            out,
            "<line class=\"mark\" x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\
             <text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{along}</text>\
             <text class=\"unit\" transform=\"translate(13 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            (left + right) / 2.0,
            bottom + 33.0,
            self.value.unit.1,
        );
    }

    fn series(&self, out: &mut String, series: &Series) {
        let colour = series.colour;
        if !series.band.is_empty() {
            let highest = series.band.iter().map(|&(time, _, most)| (time, most));
            let lowest = series.band.iter().rev();
            let lowest = lowest.map(|&(time, least, _)| (time, least));
            let points = self.points(highest.chain(lowest));
            let _ = writeln!(
                out,
                "<polygon class=\"band s{colour}\" points=\"{points}\"/>"
            );
        }
        let points = self.points(series.line.iter().copied());
        let second = if series.is_second { " second" } else { "" };
        let _ = writeln!(
            out,
            "<polyline class=\"line s{colour}{second}\" data-name=\"{}\" points=\"{points}\"/>",
            Escaped(&series.name)
        );
    }

    fn points(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut out = String::new();
        for (time, value) in points {
            let _ = write!(out, "{:.1},{:.1} ", self.x(time), self.y(value));
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn level(&self, out: &mut String, level: &Level) {
        let Area { right, .. } = self.area;
        let (left, y) = (self.x(level.from), self.y(level.value));
        let right = level.until.map_or(right, |until| self.x(until));
        let _ = writeln!(
            out,
            "<line class=\"level\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>"
        );
    }

    fn mark(&self, out: &mut String, mark: &Mark) {
        let Area { top, bottom, .. } = self.area;
        let x = self.x(mark.at);
        let _ = writeln!(
            out,
            "<line class=\"change\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"><title>{text}</title>\
             </line><path class=\"change\" d=\"M{x:.1} {top} l-4 -8 h8 z\"><title>{text}</title></path>",
            text = Escaped(&mark.text),
        );
    }

    fn level_label(&self, level: &Level, scale: &Scale) -> Label {
        Label {
            y: self.y(level.value),
            class: "of-level".to_owned(),
            text: format!("{} {}", level.name, in_scale(level.value, scale)),
        }
    }

    /// Returns the label at the end of the line.
    fn line_label(&self, series: &Series) -> Option<Label> {
        let (_, value) = series.line.last()?;
        Some(Label {
            y: self.y(*value),
            class: format!("s{}", series.colour),
            text: series.name.clone(),
        })
    }
}

/// Writes the labels on the right, from the top down, without overlap.
pub(super) fn write_labels(out: &mut String, area: &Area, mut labels: Vec<Label>) {
    let Area { right, bottom, .. } = *area;
    labels.sort_by(|one, other| one.y.total_cmp(&other.y));
    let mut free = f64::MIN;
    for (index, label) in labels.iter().enumerate() {
        // Leave space for the labels below this one.
        let below = (labels.len() - 1 - index) as f64 * LABEL_HEIGHT;
        let y = label.y.min(bottom - below).max(free);
        free = y + LABEL_HEIGHT;
        let class = &label.class;
        let _ = writeln!(
            out,
            "<line class=\"leader {class}\" x1=\"{right}\" y1=\"{:.1}\" x2=\"{:.1}\" \
             y2=\"{y:.1}\"/><text class=\"note {class}\" x=\"{:.1}\" y=\"{:.1}\">{}\
             <title>{}</title></text>",
            label.y,
            right + 8.0,
            right + 10.0,
            y + 4.0,
            Escaped(&shortened(&label.text)),
            Escaped(&label.text),
        );
    }
}

/// Truncates a text to the space beside a plot.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LABEL_CHARACTERS {
        return text.to_owned();
    }
    let start: String = text.chars().take(LABEL_CHARACTERS - 1).collect();
    format!("{start}…")
}
