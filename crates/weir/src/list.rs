//! `weir list`

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use weir_scenario::{Document, ScenarioError, shipped};

use crate::failure::Failure;
use crate::output;

/// The default folder of scenarios.
const HERE: &str = "scenarios";

/// The arguments of `weir list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir list                  the scenarios in ./scenarios, and those that ship with weir
  weir list my/experiments   those in another folder
  weir run incast            run one that ships")]
pub(crate) struct List {
    /// Folder to search, instead of ./scenarios
    folder: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An available scenario.
#[derive(Serialize)]
struct Entry {
    /// The name or path for `weir run`.
    name: String,
    title: String,
    source: String,
    /// Whether it ships with the program, and is not a file.
    shipped: bool,
    /// Its mistakes, if it has any.
    mistakes: Option<String>,
}

impl List {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(HERE));
        let files = match files(folder) {
            Ok(files) => files,
            Err(_) if self.folder.is_none() => Vec::new(),
            Err(error) => {
                return Err(Failure::Failed(format!("{}: {error}", folder.display())));
            }
        };
        // In weir's own folder, do not list shipped scenarios twice.
        let is_there = |name: &str| {
            files
                .iter()
                .any(|path| path.file_stem() == Some(name.as_ref()))
        };
        let shipped = shipped::SHIPPED.iter().filter(|(name, _)| !is_there(name));
        let shipped = shipped.map(|(name, text)| Entry::shipped(name, text));
        let entries: Vec<_> = files
            .iter()
            .map(|path| Entry::of_file(path))
            .chain(shipped)
            .collect();
        if self.json {
            output::print_json(&entries)
        } else {
            output::print(&text(&entries))
        }
    }
}

/// Returns the scenario files in a folder, sorted by name.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
            && path.is_file()
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl Entry {
    fn of_file(path: &Path) -> Self {
        let name = path.display().to_string();
        Self::new(name, false, Document::load(path))
    }

    fn shipped(name: &str, text: &str) -> Self {
        Self::new(name.to_owned(), true, Document::parse(name, text))
    }

    fn new(name: String, shipped: bool, document: Result<Document, ScenarioError>) -> Self {
        let scenario = document.and_then(|document| document.scenario());
        let (title, source, mistakes) = match scenario {
            Ok(scenario) => (scenario.title, scenario.source, None),
            Err(error) => (String::new(), String::new(), Some(error.to_string())),
        };
        Self {
            name,
            title,
            source,
            shipped,
            mistakes,
        }
    }
}

fn text(entries: &[Entry]) -> String {
    let mut out = String::new();
    for is_shipped in [false, true] {
        let mut these = entries.iter().filter(|entry| entry.shipped == is_shipped);
        let Some(first) = these.next() else { continue };
        if is_shipped {
            out.push_str("With weir, to be run by name:\n\n");
        }
        for entry in std::iter::once(first).chain(these) {
            let _ = writeln!(out, "{}", entry.name);
            match &entry.mistakes {
                None => {
                    let _ = writeln!(out, "    {}\n    {}\n", entry.title, entry.source);
                }
                Some(mistakes) => {
                    let first = mistakes.lines().next().unwrap_or_default();
                    let _ = writeln!(out, "    has mistakes: {first}\n");
                }
            }
        }
    }
    out.push_str("`weir run NAME` simulates one; `weir check NAME` prints it in full.\n");
    // Text from files must not control a terminal.
    out.retain(|character| character == '\n' || !character.is_control());
    out
}
