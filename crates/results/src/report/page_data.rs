//! The data of a page's figures as JSON, small enough for a page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use super::figure::{AxisKind, Detail, Figure, Kind, Level, Line, Which};
use super::ranking::Ranking;
use crate::summary::{SIZE_NAMES, size_end, size_value};

/// The most bytes of the data on a page.
pub(super) const MOST_BYTES: usize = 1_250_000;

/// The figures of one run, or of two runs that are compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// Its title; empty if the page has no other.
    pub(super) title: String,
    /// What tells the run apart, as text.
    pub(super) note: String,
    /// The end of time in seconds.
    pub(super) end: f64,
    /// The end of the warm-up in seconds.
    pub(super) warm_up: f64,
    /// Changes of settings: when, in seconds, and what.
    pub(super) changes: Vec<(f64, String)>,
    pub(super) figures: Vec<Figure>,
}

/// Returns the JSON of the finest detail that fits on a page; the coarsest one if none does. `sections` are those of a
/// detail.
pub(super) fn fitting(ranking: &Ranking, sections: impl Fn(Detail) -> Vec<Section>) -> String {
    let mut text = String::new();
    for detail in Detail::ALL {
        text = PageData::new(ranking, detail, &sections(detail)).to_json();
        if text.len() <= MOST_BYTES {
            break;
        }
    }
    text
}

#[derive(Debug, Serialize)]
struct PageData<'p> {
    ports: Entries<'p>,
    groups: Entries<'p>,
    flows: Entries<'p>,
    axes: Vec<Axis>,
    /// The places of points, which many lines share.
    xs: IndexSet<String>,
    sections: Vec<SectionData<'p>>,
}

/// The ports, groups or flows, the worst first.
#[derive(Debug, Serialize)]
struct Entries<'p> {
    names: Vec<&'p str>,
    measures: Vec<f64>,
    /// How many of them no figure has, so that the page stays small.
    #[serde(rename = "leftOut")]
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Axis {
    name: String,
    unit: &'static str,
    logarithmic: bool,
    from: f64,
    to: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<Tick>,
}

#[derive(Debug, Serialize)]
struct Tick {
    at: f64,
    text: String,
}

#[derive(Debug, Serialize)]
struct SectionData<'p> {
    title: &'p str,
    note: &'p str,
    #[serde(rename = "warmUp")]
    warm_up: f64,
    changes: Vec<Change<'p>>,
    figures: Vec<FigureData<'p>>,
}

#[derive(Debug, Serialize)]
struct Change<'p> {
    at: f64,
    text: &'p str,
}

#[derive(Debug, Serialize)]
struct FigureData<'p> {
    id: &'static str,
    title: &'p str,
    caption: &'p str,
    unit: &'static str,
    per: &'static str,
    /// A place among the axes.
    axis: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<Kind>,
    logarithmic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<f64>,
    /// What the vertical axis reaches at least, as the same figure of other sections does.
    reach: f64,
    points: bool,
    lines: Vec<LineData<'p>>,
    levels: Vec<LevelData<'p>>,
}

#[derive(Debug, Serialize)]
struct LineData<'p> {
    /// A place among the ports, groups or flows, or a name.
    of: Name<'p>,
    run: Which,
    /// A place among the `xs`.
    x: usize,
    y: Numbers,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<Numbers>,
}

#[derive(Debug, Serialize)]
struct LevelData<'p> {
    of: Name<'p>,
    label: &'p str,
    value: f64,
    from: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Name<'p> {
    Place(usize),
    Text(&'p str),
}

/// The values of a line.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Numbers {
    /// All of them.
    Same(f32),
    /// Single-precision numbers, little endian, in Base64.
    Each(String),
    /// The greatest value, and each as so many 65,535ths of it: 16 bits, little endian, in Base64.
    Rough(f32, String),
}

impl<'p> PageData<'p> {
    fn new(ranking: &'p Ranking, detail: Detail, sections: &'p [Section]) -> Self {
        let figures = || sections.iter().flat_map(|section| &section.figures);
        let axes: IndexSet<&AxisKind> = figures().map(|figure| &figure.axis).collect();
        let end = sections
            .iter()
            .map(|section| section.end)
            .fold(0.0, f64::max);
        let mut reaches: IndexMap<(&str, &str), f64> = IndexMap::new();
        for figure in figures() {
            let reach = reaches.entry((figure.id, &figure.title)).or_default();
            *reach = reach.max(figure.greatest());
        }
        let entries = |kind| {
            let entries = ranking.entries(kind);
            Entries {
                names: entries.keys().map(String::as_str).collect(),
                measures: entries.values().copied().collect(),
                left_out: entries.len().saturating_sub(detail.lines),
            }
        };
        let mut xs = IndexSet::new();
        let sections = sections.iter().map(|section| SectionData {
            title: &section.title,
            note: &section.note,
            warm_up: section.warm_up,
            changes: (section.changes.iter())
                .map(|(at, text)| Change { at: *at, text })
                .collect(),
            figures: (section.figures.iter())
                .map(|figure| {
                    let axis = axes.get_index_of(&figure.axis).unwrap_or_default();
                    let reach = reaches.get(&(figure.id, figure.title.as_str()));
                    let reach = reach.copied().unwrap_or(0.0);
                    figure.data(ranking, detail, axis, reach, &mut xs)
                })
                .collect(),
        });
        let sections = sections.collect();
        let axes = axes.iter().map(|kind| {
            let lines = figures().filter(|figure| figure.axis == **kind);
            let values = lines.flat_map(|figure| figure.lines.iter().flat_map(|line| &line.x));
            Axis::of(kind, values.copied(), end)
        });
        Self {
            ports: entries(Kind::Ports),
            groups: entries(Kind::Groups),
            flows: entries(Kind::Flows),
            axes: axes.collect(),
            xs,
            sections,
        }
    }

    /// Returns the JSON, which no text in it can end as the content of a script element.
    fn to_json(&self) -> String {
        // There are neither maps with other keys than texts nor errors of the types' own.
        let text = serde_json::to_string(self).unwrap_or_default();
        // The character is only in texts.
        text.replace('<', "\\u003c")
    }
}

impl Axis {
    fn of(kind: &AxisKind, values: impl Iterator<Item = f64>, end: f64) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let least = values.first().copied().unwrap_or(0.0);
        let most = values.last().copied().unwrap_or(1.0);
        let axis = |name: &str, unit, logarithmic, from, to| Self {
            name: name.to_owned(),
            unit,
            logarithmic,
            from,
            to,
            marks: Vec::new(),
        };
        match kind {
            AxisKind::Time => axis("time", "seconds", false, 0.0, end),
            AxisKind::Completion => {
                axis("completion time", "seconds", true, least * 0.9, most * 1.1)
            }
            AxisKind::Epoch => axis("epoch", "count", false, 0.0, most.max(1.0)),
            AxisKind::Size => {
                let sizes = SIZE_NAMES.into_iter().map(|name| Tick {
                    at: size_value(name),
                    text: size_end(name).to_owned(),
                });
                Self {
                    marks: sizes.filter(|mark| values.contains(&mark.at)).collect(),
                    ..axis("size up to", "bytes", true, least / 2.0, most * 2.0)
                }
            }
            AxisKind::Key(name) => {
                let margin = 0.08 * (most - least);
                let marks = values.iter().map(|value| Tick {
                    at: *value,
                    text: value.to_string(),
                });
                Self {
                    marks: marks.collect(),
                    ..axis(name, "count", false, least - margin, most + margin)
                }
            }
        }
    }
}

impl Figure {
    fn data<'p>(
        &'p self,
        ranking: &Ranking,
        detail: Detail,
        axis: usize,
        reach: f64,
        xs: &mut IndexSet<String>,
    ) -> FigureData<'p> {
        let name = |name: &'p str| match self.of {
            Some(kind) => Name::Place(ranking.rank(kind, name)),
            None => Name::Text(name),
        };
        let lines = self.lines.iter().map(|line| {
            let rank = self.of.map_or(0, |kind| ranking.rank(kind, &line.name));
            let is_rough = detail.is_rough(rank) && !self.has_points;
            line.data(name(&line.name), is_rough, xs)
        });
        let levels = self.levels.iter().map(|level| level.data(name(&level.of)));
        FigureData {
            id: self.id,
            title: &self.title,
            caption: &self.caption,
            unit: self.unit,
            per: self.per,
            axis,
            of: self.of,
            logarithmic: self.is_logarithmic,
            top: self.top,
            reach,
            points: self.has_points,
            lines: lines.collect(),
            levels: levels.collect(),
        }
    }
}

impl Line {
    fn data<'p>(&self, of: Name<'p>, is_rough: bool, xs: &mut IndexSet<String>) -> LineData<'p> {
        let (x, _) = xs.insert_full(encoded(&self.x));
        let [low, high] = match &self.band {
            Some(ends) => [0, 1].map(|end| Some(Numbers::of(&ends[end], is_rough))),
            None => [None, None],
        };
        LineData {
            of,
            run: self.which,
            x,
            y: Numbers::of(&self.y, is_rough),
            low,
            high,
        }
    }
}

impl Level {
    fn data<'p>(&'p self, of: Name<'p>) -> LevelData<'p> {
        LevelData {
            of,
            label: &self.label,
            value: self.value,
            from: self.from,
            until: self.until,
        }
    }
}

impl Numbers {
    fn of(values: &[f64], is_rough: bool) -> Self {
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Self::Same(*first as f32),
            Some(_) if is_rough => Self::rough(values),
            _ => Self::Each(encoded(values)),
        }
    }

    fn rough(values: &[f64]) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        let parts = values.iter().map(|value| {
            // Plotted values are not negative.
            let part = (value / most * f64::from(u16::MAX)).round();
            part as u16
        });
        let bytes: Vec<u8> = parts.flat_map(u16::to_le_bytes).collect();
        Self::Rough(most as f32, STANDARD.encode(bytes))
    }
}

fn encoded(values: &[f64]) -> String {
    let bytes = values
        .iter()
        .flat_map(|value| (*value as f32).to_le_bytes());
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(values: &[f64], is_rough: bool) -> String {
        serde_json::to_string(&Numbers::of(values, is_rough)).unwrap()
    }

    #[test]
    fn values_are_one_number_or_text() {
        assert_eq!(json(&[2.5, 2.5], false), "2.5");
        assert_eq!(json(&[], true), "\"\"");
        // 0, 1 and 1.5 in single precision.
        assert_eq!(json(&[0.0, 1.0, 1.5], false), "\"AAAAAAAAgD8AAMA/\"");
        // 0, 32,768 and 65,535.
        assert_eq!(json(&[0.0, 1.0, 2.0], true), "[2.0,\"AAAAgP//\"]");
    }

    #[test]
    fn the_classes_of_sizes_are_marks() {
        let axis = Axis::of(&AxisKind::Size, [1e4, 1e9].into_iter(), 0.0);
        let marks: Vec<_> = axis.marks.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(marks, ["10KB", "\u{221e}"]);
        assert_eq!((axis.from, axis.to), (5e3, 2e9));
        let key = Axis::of(
            &AxisKind::Key("load".to_owned()),
            [0.8, 0.3, 0.8].into_iter(),
            0.0,
        );
        let marks: Vec<_> = key.marks.iter().map(|mark| mark.text.as_str()).collect();
        assert_eq!(marks, ["0.3", "0.8"]);
    }
}
