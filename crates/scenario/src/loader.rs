//! Loads scenario files, and overrides their values with settings.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use weir_congestion::{Plugin, algorithms};

use crate::document::{
    Node, Plugins, Problems, Value, check_used, parse, parse_value, read_text, set,
};
use crate::error::Position;
use crate::read::read_scenario;
use crate::{Scenario, ScenarioError};

/// The maximum file size in MiB. A scenario of 20,000 hosts listed one by one has 3 MB.
pub(crate) const LARGEST_FILE: u64 = 64;

/// A value that overrides the one in the file: `parameters.line_rate=5Gbps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The path to the key: `groups.dctcp.flows`, `links.0.rate`.
    pub path: String,
    /// The value, in TOML; a value that is not valid TOML is taken as text.
    pub value: String,
}

/// The text is not a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no path=value; write for example `parameters.line_rate=5Gbps`")]
pub struct SettingError {
    /// The text.
    pub text: String,
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => Ok(Self {
                path: path.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => Err(SettingError {
                text: text.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

/// A name that no plug-in can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a congestion control cannot be called `{name}`: the names of `weir algorithms` are taken")]
pub struct PluginNameError {
    /// The name.
    pub name: String,
}

/// A scenario file before it is checked; settings apply to it. To run one file with many values, a
/// caller reads it once and derives a scenario for each.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) file: Arc<str>,
    pub(crate) root: Node,
    plugins: Plugins,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has unused parameters.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = read_text(path, LARGEST_FILE, "scenario")?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads text; errors contain `name`.
    ///
    /// # Errors
    /// The text is not TOML, or has unused parameters.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let file: Arc<str> = Arc::from(name);
        let problems = Problems::new(&file, None);
        let root = parse(text, &problems).and_then(|root| {
            check_used(&root, &problems)?;
            Ok(root)
        });
        let root = problems.finish(root)?;
        Ok(Self {
            file,
            root,
            plugins: Plugins::new(),
        })
    }

    /// Returns a copy with `settings` applied; the later of two for one path wins.
    ///
    /// # Errors
    /// A path does not exist.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, ScenarioError> {
        let mut document = self.clone();
        let problems = Problems::new(&self.file, None);
        for setting in settings {
            let position = Position::Setting(Arc::from(setting.to_string()));
            let value = parse_value(&setting.value, &position)
                .unwrap_or_else(|| Node::new(Value::Text(setting.value.clone()), position.clone()));
            if let Err(kind) = set(&mut document.root, &setting.path, value) {
                problems.add(position, setting.path.clone(), kind);
            }
        }
        problems.finish(Ok(document))
    }

    /// Returns it with a congestion control that the scenario calls by this name.
    ///
    /// # Errors
    /// The registry has an algorithm of this name.
    pub fn with_plugin(
        mut self,
        name: &str,
        plugin: Arc<dyn Plugin>,
    ) -> Result<Self, PluginNameError> {
        if name.is_empty() || algorithms().any(|algorithm| algorithm.name == name) {
            return Err(PluginNameError {
                name: name.to_owned(),
            });
        }
        self.plugins.insert(name.to_owned(), plugin);
        Ok(self)
    }

    /// Returns the checked scenario, without the file's variants.
    ///
    /// # Errors
    /// All mistakes that were found.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.read(None)
    }

    /// Returns the file's `[parameters]` by name.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let root = self.root.as_table();
        let parameters = root.and_then(|root| root.get("parameters")?.as_table());
        let entries = parameters.iter().flat_map(|table| &table.entries);
        entries
            .map(|entry| (entry.key.clone(), entry.node.to_string()))
            .collect()
    }

    pub(crate) fn read(&self, variant: Option<&str>) -> Result<Scenario, ScenarioError> {
        let problems = Problems::new(&self.file, variant).with_plugins(&self.plugins);
        let scenario = read_scenario(self.root.clone(), &problems);
        problems.finish(scenario)
    }
}
