//! `[variants]`: the same scenario with other values, by name or as a grid.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::document::{Cursor, Node, Problems, Reported, Table, Value, get, set, substitute};
use crate::error::ProblemKind;
use crate::loader::{Document, Setting};
use crate::{Scenario, ScenarioError};

/// A scenario file and its variants, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedScenario {
    /// The file's own values.
    pub scenario: Scenario,
    /// The file's `[parameters]` by name, for display.
    pub parameters: Vec<(String, String)>,
    /// The variants, in file order; a grid's points follow, the last key changing fastest.
    pub variants: Vec<Variant>,
    /// The keys that variants change, in the order in which they first do.
    pub varied: Vec<VariedKey>,
}

/// A key that a variant changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariedKey {
    /// Its path: `parameters.ecn_threshold`.
    pub path: String,
    /// The last part of its path, or all of it if another key that variants change has the same last part.
    pub label: String,
    /// The file's own value, as a setting has it; `None` if the file has none.
    pub own: Option<String>,
}

/// A scenario with some values changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The values that differ from the file.
    pub settings: Vec<Setting>,
    /// The whole scenario.
    pub scenario: Scenario,
}

impl Scenario {
    /// Reads a scenario file, with `settings` that override its values.
    ///
    /// # Errors
    /// The file cannot be read, or it has mistakes: the error lists those that were found.
    pub fn load(path: &Path, settings: &[Setting]) -> Result<LoadedScenario, ScenarioError> {
        let document = Document::load(path)?;
        document.with(settings)?.expand()
    }

    /// Reads a scenario from text; errors contain `name`.
    ///
    /// # Errors
    /// See [`Scenario::load`].
    pub fn parse(
        name: &str,
        text: &str,
        settings: &[Setting],
    ) -> Result<LoadedScenario, ScenarioError> {
        let document = Document::parse(name, text)?;
        document.with(settings)?.expand()
    }
}

impl Document {
    /// Returns the checked scenario and its variants.
    ///
    /// # Errors
    /// The mistakes that were found. If the file's own values have none, those of the first variant
    /// that has some.
    pub fn expand(&self) -> Result<LoadedScenario, ScenarioError> {
        let scenario = self.scenario()?;
        let mut variants: Vec<Variant> = Vec::new();
        let mut ports = 0;
        for (name, settings, document) in self.read_variants(|at| self.changed(at))? {
            let scenario = document.read(Some(&name))?;
            ports += scenario.topology.ports.len() as u64;
            self.read_variants(|at| check_ports(at, ports))?;
            variants.push(Variant {
                name,
                settings,
                scenario,
            });
        }
        Ok(LoadedScenario {
            scenario,
            parameters: self.parameters(),
            varied: self.varied(&variants),
            variants,
        })
    }

    /// Returns the keys that these variants change.
    fn varied(&self, variants: &[Variant]) -> Vec<VariedKey> {
        let settings = variants.iter().flat_map(|variant| &variant.settings);
        let mut seen = HashSet::new();
        let paths = settings.map(|setting| setting.path.as_str());
        let paths: Vec<&str> = paths.filter(|path| seen.insert(*path)).collect();
        let mut root = self.root.clone();
        // Its mistakes were reported when the scenario was read.
        let _ = substitute(&mut root, &Problems::new(&self.file, None));
        let keys = paths.iter().zip(labels(paths.clone()));
        keys.map(|(path, label)| VariedKey {
            path: (*path).to_owned(),
            label: label.to_owned(),
            own: get(&root, path).map(Node::to_string),
        })
        .collect()
    }

    /// Returns the result of `read` for `[variants]`; the default if there are none.
    fn read_variants<T: Default>(
        &self,
        read: impl FnOnce(&Cursor<'_>) -> Result<T, Reported>,
    ) -> Result<T, ScenarioError> {
        let table = self.root.as_table().and_then(|root| root.get("variants"));
        let Some(table) = table else {
            return Ok(T::default());
        };
        let problems = Problems::new(&self.file, None);
        let read = read(&Cursor::top(&self.root, &problems).child("variants", table));
        problems.finish(read)
    }

    /// Returns the variants before they are checked.
    fn changed(&self, at: &Cursor<'_>) -> Result<Vec<Changed>, Reported> {
        let mut changed = Vec::new();
        let mut grid = None;
        for (name, at) in at.named("tables `[variants.NAME]`")? {
            let Some(table) = at.node.as_table() else {
                return Err(at.wrong_kind("a table"));
            };
            match name {
                GRID => grid = Some(points(&at, table)),
                _ => changed.push(self.change(&at, name, &flatten(table))?),
            }
        }
        for (name, changes) in grid.transpose()?.unwrap_or_default() {
            changed.push(self.change(&at.child(&name, at.node), &name, &changes)?);
        }
        let mut names = HashSet::new();
        match changed.iter().find(|(name, ..)| !names.insert(name)) {
            Some((name, ..)) => Err(at.problem(ProblemKind::DuplicateName {
                what: "variant",
                name: name.clone(),
            })),
            None => Ok(changed),
        }
    }

    /// Returns the variant `name`; its mistakes are reported at `at`.
    fn change(&self, at: &Cursor<'_>, name: &str, changes: &Changes) -> Result<Changed, Reported> {
        let mut changed = self.clone();
        let mut settings = Vec::new();
        for (path, value) in changes {
            settings.push(Setting {
                path: path.clone(),
                value: value.to_string(),
            });
            set(&mut changed.root, path, value.clone())
                .map_err(|kind| at.child(path, value).problem(kind))?;
        }
        Ok((name.to_owned(), settings, changed))
    }
}

/// The maximum number of ports of all variants of one file together.
const MOST_PORTS: u64 = 2_000_000;

fn check_ports(at: &Cursor<'_>, count: u64) -> Result<(), Reported> {
    if count <= MOST_PORTS {
        Ok(())
    } else {
        Err(at.problem(ProblemKind::TooMany {
            what: "ports in all variants",
            count,
            limit: MOST_PORTS,
            reason: "each variant is a scenario in memory; larger grids are sweeps",
        }))
    }
}

/// The table whose values are lists: every combination is a variant.
const GRID: &str = "grid";

/// The maximum number of variants of one file.
const MOST: u64 = 10_000;

/// A variant of a file: its name, the changed settings, and the document with them applied.
type Changed = (String, Vec<Setting>, Document);

/// Values by path, in file order.
type Changes = Vec<(String, Node)>;

/// Returns every combination of a grid's values, the last key changing fastest.
fn points(at: &Cursor<'_>, grid: &Table) -> Result<Vec<(String, Changes)>, Reported> {
    let mut axes = Vec::new();
    let mut count = 1_u64;
    for (path, node) in flatten(grid) {
        let at = at.child(&path, &node);
        let values = match &node.value {
            Value::Array(values) if !values.is_empty() => values,
            _ => return Err(at.wrong_kind("a list of values")),
        };
        count = count.saturating_mul(values.len() as u64);
        if count > MOST {
            return Err(at.problem(ProblemKind::TooMany {
                what: "variants",
                count,
                limit: MOST,
                reason: "each is a scenario in memory; larger grids are sweeps",
            }));
        }
        axes.push((path, values.clone()));
    }
    if axes.is_empty() {
        return Ok(Vec::new());
    }
    let labels = labels(axes.iter().map(|(path, _)| path.as_str()).collect());
    let mut points: Vec<(String, Changes)> = vec![(String::new(), Vec::new())];
    for ((path, values), label) in axes.iter().zip(labels) {
        let longer = |(name, changes): &(String, Changes), value: &Node| {
            let comma = if name.is_empty() { "" } else { "," };
            let mut changes = changes.clone();
            changes.push((path.clone(), value.clone()));
            (format!("{name}{comma}{label}={value}"), changes)
        };
        points = points
            .iter()
            .flat_map(|point| values.iter().map(move |value| longer(point, value)))
            .collect();
    }
    Ok(points)
}

/// Returns the label of each axis: the last part of its path, unless two axes share it.
fn labels(paths: Vec<&str>) -> Vec<&str> {
    let last = |path: &'_ str| path.rsplit('.').next().map_or(0, str::len);
    let mut shared: HashMap<&str, usize> = HashMap::new();
    for path in &paths {
        *shared.entry(&path[path.len() - last(path)..]).or_default() += 1;
    }
    let label = |path: &&'_ str| {
        let start = path.len() - last(path);
        if shared.get(&path[start..]) == Some(&1) {
            start
        } else {
            0
        }
    };
    paths.iter().map(|path| &path[label(path)..]).collect()
}

/// Flattens nested tables to values by path.
fn flatten(table: &Table) -> Changes {
    let mut changes = Vec::new();
    for entry in &table.entries {
        match &entry.node.value {
            Value::Table(inner) if !inner.is_whole() => {
                let inner = flatten(inner).into_iter();
                changes.extend(inner.map(|(path, node)| (format!("{}.{path}", entry.key), node)));
            }
            _ => changes.push((entry.key.clone(), entry.node.clone())),
        }
    }
    changes
}
