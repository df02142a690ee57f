//! What hosts say of themselves: `role=web`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The labels of a host, or those that it must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

/// The most labels of a host.
const MOST_LABELS: usize = 32;
/// The most characters of a key or a value.
const LONGEST: usize = 63;

/// A text that is no label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// It has another form.
    #[error(
        "`{0}` is no label: write KEY=VALUE such as role=web, each of 1 to 63 letters, digits, `-`, `_` and `.`"
    )]
    Form(String),
    /// A key has two values.
    #[error("the label `{0}` has two values")]
    Twice(String),
    /// There are too many.
    #[error("a host has at most {MOST_LABELS} labels")]
    TooMany,
}

impl Labels {
    /// Creates labels from pairs.
    ///
    /// # Errors
    /// [`LabelError`].
    pub fn new<T: Into<String>>(
        pairs: impl IntoIterator<Item = (T, T)>,
    ) -> Result<Self, LabelError> {
        let mut labels = BTreeMap::new();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            if !is_word(&key) || !is_word(&value) {
                return Err(LabelError::Form(format!("{key}={value}")));
            }
            if labels.insert(key.clone(), value).is_some() {
                return Err(LabelError::Twice(key));
            }
        }
        if labels.len() > MOST_LABELS {
            return Err(LabelError::TooMany);
        }
        Ok(Self(labels))
    }

    /// Reads labels of the form `KEY=VALUE`.
    ///
    /// # Errors
    /// [`LabelError`].
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, LabelError> {
        let pair = |text: &'t str| {
            let pair = text.trim().split_once('=');
            pair.ok_or_else(|| LabelError::Form(text.to_owned()))
        };
        let pairs = texts.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?;
        Self::new(pairs)
    }

    /// Returns the keys and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        { self.0.iter() }.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a host with these labels has all of `wanted`.
    pub fn has(&self, wanted: &Self) -> bool {
        { wanted.0.iter() }.all(|(key, value)| self.0.get(key) == Some(value))
    }
}

fn is_word(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl FromStr for Labels {
    type Err = LabelError;

    /// Reads `role=web and rack=r1`.
    fn from_str(text: &str) -> Result<Self, LabelError> {
        Self::parse(text.split(" and "))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.0.iter().enumerate() {
            let and = if number == 0 { "" } else { " and " };
            write!(f, "{and}{key}={value}")?;
        }
        Ok(())
    }
}
