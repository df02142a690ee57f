//! The figures of a page as numbers; its script draws them.

use serde::Serialize;

/// What the lines of a figure are of. The page chooses among them, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Ports,
    Groups,
    /// Single flows, called by their group and their number in it.
    Flows,
}

/// The quantity of the horizontal axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AxisKind {
    /// Time in seconds.
    Time,
    /// A completion time in seconds, logarithmic.
    Completion,
    /// The upper end of a class of sizes in bytes, logarithmic.
    Size,
    /// An epoch's number.
    Epoch,
    /// The values of a key, with this name.
    Key(String),
}

/// Which of two experiments a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Which {
    /// The only one, or A.
    #[default]
    A,
    B,
}

/// A figure: lines over an axis.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Its name in the page's addresses and saved files; one of a page's figures with this name and section.
    pub(super) id: &'static str,
    pub(super) title: String,
    /// What a reader must know beside the title.
    pub(super) caption: String,
    /// The unit of the values: `bytes`, `bits/s`, `seconds`, `ratio` or `count`.
    pub(super) unit: &'static str,
    /// What follows the unit: `/s` for rates.
    pub(super) per: &'static str,
    pub(super) axis: AxisKind,
    /// What its lines are of; `None` if all are shown at once.
    pub(super) of: Option<Kind>,
    pub(super) is_logarithmic: bool,
    /// The end of the vertical axis, if the values have one.
    pub(super) top: Option<f64>,
    /// Whether its points are marked: there are few, and nothing was measured between them.
    pub(super) has_points: bool,
    pub(super) lines: Vec<Line>,
    pub(super) levels: Vec<Level>,
}

/// A line of a figure.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) which: Which,
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
    /// The least and the greatest values around those of the line.
    pub(super) band: Option<[Vec<f64>; 2]>,
}

/// A value that is drawn as a horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Level {
    /// The line's name beside which it is drawn.
    pub(super) of: String,
    pub(super) label: String,
    pub(super) value: f64,
    /// Where it begins, in seconds.
    pub(super) from: f64,
    /// Where it ends; `None` for the end of the axis.
    pub(super) until: Option<f64>,
}

impl Figure {
    /// Returns a figure over time without lines.
    pub(super) fn over_time(id: &'static str, title: &str, unit: &'static str) -> Self {
        Self {
            id,
            title: title.to_owned(),
            caption: String::new(),
            unit,
            per: "",
            axis: AxisKind::Time,
            of: None,
            is_logarithmic: false,
            top: None,
            has_points: false,
            lines: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Returns the greatest value of lines and bands.
    pub(super) fn greatest(&self) -> f64 {
        let lines = self.lines.iter().flat_map(|line| &line.y);
        let bands = self.lines.iter().filter_map(|line| line.band.as_ref());
        let bands = bands.flat_map(|[_, most]| most);
        lines.chain(bands).copied().fold(0.0, f64::max)
    }
}

impl Line {
    /// Returns a line through these points.
    pub(super) fn through(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Self {
        let (x, y) = points.unzip();
        Self {
            name: name.to_owned(),
            x,
            y,
            ..Self::default()
        }
    }
}

/// How many points lines have, so that a page stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// Columns of the traces per point of the first [`FINE_LINES`] lines of a figure.
    pub(super) first: usize,
    /// The same of the others.
    pub(super) others: usize,
    /// The most lines of a figure.
    pub(super) lines: usize,
}

/// The number of lines that a page shows at once, and so at the finest detail.
const FINE_LINES: usize = 16;

impl Detail {
    /// All details, the finest first.
    pub(super) const ALL: [Self; 10] = [
        Self::new(1, 1, usize::MAX),
        Self::new(1, 2, usize::MAX),
        Self::new(1, 4, usize::MAX),
        Self::new(1, 8, usize::MAX),
        Self::new(1, 16, usize::MAX),
        Self::new(1, 32, usize::MAX),
        Self::new(4, 16, 1_000),
        Self::new(8, 24, 300),
        Self::new(16, 48, 100),
        Self::new(48, 48, 16),
    ];

    const fn new(first: usize, others: usize, lines: usize) -> Self {
        Self {
            first,
            others,
            lines,
        }
    }

    /// Returns whether the values of the line of this rank are rounded: it is only drawn if somebody asks for it.
    pub(super) fn is_rough(self, rank: usize) -> bool {
        self.others > 1 && rank >= FINE_LINES
    }

    /// Returns how many columns a point of the line of this rank combines; `None` if it is left out.
    pub(super) fn per_point(self, rank: usize) -> Option<usize> {
        if rank >= self.lines {
            None
        } else if rank < FINE_LINES {
            Some(self.first)
        } else {
            Some(self.others)
        }
    }
}
