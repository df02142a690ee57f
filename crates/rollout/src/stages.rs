//! To which hosts a version goes, one stage after the other: `10 % of role=web, then 50 %, then all`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::labels::{LabelError, Labels};

/// A part of the hosts that have some labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Stage {
    /// The part of them in percent, above 0 and at most 100.
    pub percent: f64,
    /// The labels that they have; empty for all hosts.
    pub labels: Labels,
}

/// The stages of a roll-out, of which the last one is all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Stages(Vec<Stage>);

/// A text that says no stages.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StagesError {
    /// A stage has another form.
    #[error("`{0}` is no stage: write `10 %`, `10 % of role=web`, `role=web` or `all`")]
    Form(String),
    /// A part is none.
    #[error("`{0}` is no part of the hosts: it is above 0 % and at most 100 %")]
    Percent(String),
    /// A label is none.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The last stage leaves hosts out.
    #[error(
        "the last stage is `{0}`: it must be `all`, as every host has the policy in the end; rules with `from` \
         or `cgroup` apply to some only"
    )]
    Last(String),
}

impl Stage {
    /// All hosts.
    pub fn all() -> Self {
        Self {
            percent: 100.0,
            labels: Labels::default(),
        }
    }

    /// Returns whether it is all hosts.
    pub fn is_all(&self) -> bool {
        self.percent >= 100.0 && self.labels.is_empty()
    }
}

impl FromStr for Stage {
    type Err = StagesError;

    fn from_str(text: &str) -> Result<Self, StagesError> {
        let text = text.trim();
        let form = || StagesError::Form(text.to_owned());
        if text == "all" {
            return Ok(Self::all());
        }
        let Some((percent, rest)) = text.split_once('%') else {
            let labels = text.strip_prefix("all of ").unwrap_or(text);
            if !labels.contains('=') {
                return Err(form());
            }
            let labels = labels.parse()?;
            return Ok(Self {
                percent: 100.0,
                labels,
            });
        };
        let labels = match rest.trim() {
            "" => Labels::default(),
            rest => rest.strip_prefix("of ").ok_or_else(form)?.parse()?,
        };
        let percent: f64 = percent.trim().parse().map_err(|_| form())?;
        if !(percent > 0.0 && percent <= 100.0) {
            return Err(StagesError::Percent(format!("{percent} %")));
        }
        Ok(Self { percent, labels })
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, labels } = self;
        match (labels.is_empty(), *percent >= 100.0) {
            (true, true) => f.write_str("all"),
            (true, false) => write!(f, "{percent} %"),
            (false, true) => write!(f, "{labels}"),
            (false, false) => write!(f, "{percent} % of {labels}"),
        }
    }
}

impl Stages {
    /// All hosts at once.
    pub fn at_once() -> Self {
        Self(vec![Stage::all()])
    }

    /// Returns the stages, of which there is at least one.
    pub fn list(&self) -> &[Stage] {
        &self.0
    }
}

impl FromStr for Stages {
    type Err = StagesError;

    fn from_str(text: &str) -> Result<Self, StagesError> {
        let parts = text.split("then");
        let parts = parts.map(|part| part.trim().trim_end_matches(','));
        let stages = parts.map(str::parse).collect::<Result<Vec<Stage>, _>>()?;
        match stages.last() {
            Some(last) if last.is_all() => Ok(Self(stages)),
            Some(last) => Err(StagesError::Last(last.to_string())),
            None => Err(StagesError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stage) in self.0.iter().enumerate() {
            let then = if number == 0 { "" } else { ", then " };
            write!(f, "{then}{stage}")?;
        }
        Ok(())
    }
}

/// As text, in the store.
macro_rules! as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = StagesError;

            fn try_from(text: String) -> Result<Self, StagesError> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

as_text!(Stage);
as_text!(Stages);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_as_they_are_written() {
        for text in [
            "all",
            "10 % of role=web, then 50 %, then all",
            "rack=r1 and role=web, then all",
            "0.5 %, then all",
        ] {
            assert_eq!(text.parse::<Stages>().unwrap().to_string(), text);
        }
        let short: Stages = "10% then all of role=web then 100%".parse().unwrap();
        assert_eq!(short.to_string(), "10 %, then role=web, then all");
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (text, right) in [
            ("", "write `10 %`"),
            ("some", "write `10 %`"),
            ("10 % role=web", "write `10 %`"),
            ("0 %, then all", "above 0 %"),
            ("101 %", "at most 100 %"),
            ("NaN %", "at most 100 %"),
            ("10 %", "it must be `all`"),
            ("role=web", "it must be `all`"),
            ("10 % of role, then all", "KEY=VALUE"),
            ("10 % of role=we b, then all", "KEY=VALUE"),
            ("10 % of a=b and a=c, then all", "two values"),
        ] {
            let said = text.parse::<Stages>().unwrap_err().to_string();
            assert!(said.contains(right), "{text}: {said}");
        }
    }
}
