//! Settings of proactive migration.

use std::fmt;
use std::str::FromStr;

use weir_units::Duration;

/// The largest window of the detectors, in streams: it bounds the memory of a connection.
const LONGEST_WINDOW: u32 = 4096;
/// The largest short-term window of [`SizeClassParameters`] and the most confirmations: verdicts
/// are kept as bits of a word.
const LONGEST_VERDICTS: u32 = 64;

/// Proactive migration of one connection (DCQUIC paper, section 3.4.1). Only clients migrate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MigrationConfig {
    /// Whether the connection moves by itself.
    pub proactive: bool,
    /// The detector of slow paths.
    pub detector: Detector,
    /// The probe timeouts without an answer after which the path counts as interrupted, 2 to 64;
    /// they are measured as time, without backoff. With 2, one lost packet can be enough.
    pub probe_timeouts: u32,
    /// Smaller differences in time never cause a move.
    pub min_increase: Duration,
    /// The least time between two moves.
    pub hysteresis: Duration,
    /// How long the preferred path has to be healthy before the connection returns to it; `None`
    /// for never.
    pub return_after: Option<Duration>,
}

impl Default for MigrationConfig {
    fn default() -> Self {
        Self {
            proactive: true,
            detector: Detector::default(),
            probe_timeouts: 3,
            min_increase: Duration::from_millis(1),
            hysteresis: Duration::from_secs(1),
            return_after: None,
        }
    }
}

impl MigrationConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn validate(&self) -> Result<(), MigrationConfigError> {
        in_range("probe_timeouts", self.probe_timeouts, 2, 64)?;
        if self.hysteresis.is_zero() {
            return Err(MigrationConfigError::Zero { name: "hysteresis" });
        }
        if self.return_after.is_some_and(Duration::is_zero) {
            return Err(MigrationConfigError::Zero {
                name: "return_after",
            });
        }
        match self.detector {
            Detector::Paper(parameters) => parameters.validate(),
            Detector::SizeClass(parameters) => parameters.validate(),
        }
    }
}

/// The detector of slow paths. By name: `paper`, `size-class`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detector {
    /// `paper`: equations 1 to 4 of the DCQUIC paper as published. It mistakes a change of task
    /// size or of the server's speed for a change of the path.
    Paper(PaperParameters),
    /// `size-class`, the default: compares streams of similar size, and only the network's share of
    /// their time.
    SizeClass(SizeClassParameters),
}

impl Detector {
    /// The names of all detectors.
    pub const NAMES: [&'static str; 2] = ["paper", "size-class"];

    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Paper(_) => Self::NAMES[0],
            Self::SizeClass(_) => Self::NAMES[1],
        }
    }

    /// Returns the factor above which a path counts as slow.
    pub const fn alpha(&self) -> f64 {
        match self {
            Self::Paper(parameters) => parameters.alpha,
            Self::SizeClass(parameters) => parameters.alpha,
        }
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::SizeClass(SizeClassParameters::default())
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Detector {
    type Err = MigrationConfigError;

    /// Returns the detector of that name, with its default parameters.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "paper" => Ok(Self::Paper(PaperParameters::default())),
            "size-class" => Ok(Self::SizeClass(SizeClassParameters::default())),
            _ => Err(MigrationConfigError::UnknownDetector { name: name.into() }),
        }
    }
}

/// The parameters of equation 4, named as in the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperParameters {
    /// `W`: the long-term window, in streams; above `w`, 4096 at most.
    pub long_window: u32,
    /// `w`: the short-term window, in streams; at least one.
    pub short_window: u32,
    /// `α`: the short-term average exceeds the long-term average by this factor; above 1.
    pub alpha: f64,
}

impl Default for PaperParameters {
    /// The paper's parameters: 50, 10, 2 (section 4.3).
    fn default() -> Self {
        Self {
            long_window: 50,
            short_window: 10,
            alpha: 2.0,
        }
    }
}

impl PaperParameters {
    fn validate(&self) -> Result<(), MigrationConfigError> {
        in_range("short_window", self.short_window, 1, LONGEST_WINDOW - 1)?;
        windows(self.long_window, self.short_window)?;
        factor(self.alpha)
    }
}

/// The parameters of the default detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClassParameters {
    /// The window of the long-term averages, in samples; above `short_window`, 4096 at most.
    pub long_window: u32,
    /// The samples that an average needs before it is used; also the last streams of which more
    /// than half must be slow for the streams alone to raise an alarm; 1 to 64.
    pub short_window: u32,
    /// A slow sample exceeds its long-term average by this factor; above 1.
    pub alpha: f64,
    /// The consecutive slow round trips that confirm a slow path, 1 to 64.
    pub confirmations: u32,
}

impl Default for SizeClassParameters {
    fn default() -> Self {
        Self {
            long_window: 50,
            short_window: 10,
            alpha: 2.0,
            confirmations: 3,
        }
    }
}

impl SizeClassParameters {
    fn validate(&self) -> Result<(), MigrationConfigError> {
        in_range("short_window", self.short_window, 1, LONGEST_VERDICTS)?;
        in_range("confirmations", self.confirmations, 1, LONGEST_VERDICTS)?;
        windows(self.long_window, self.short_window)?;
        factor(self.alpha)
    }
}

fn in_range(
    name: &'static str,
    value: u32,
    smallest: u32,
    largest: u32,
) -> Result<(), MigrationConfigError> {
    if (smallest..=largest).contains(&value) {
        return Ok(());
    }
    Err(MigrationConfigError::OutOfRange {
        name,
        value,
        smallest,
        largest,
    })
}

fn windows(long: u32, short: u32) -> Result<(), MigrationConfigError> {
    in_range("long_window", long, short + 1, LONGEST_WINDOW)
}

fn factor(alpha: f64) -> Result<(), MigrationConfigError> {
    if alpha.is_finite() && alpha > 1.0 {
        return Ok(());
    }
    Err(MigrationConfigError::Alpha { alpha })
}

/// A setting of proactive migration that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MigrationConfigError {
    /// A count outside its range.
    #[error("{name} is {value}: it must be from {smallest} to {largest}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: u32,
        /// The smallest allowed value, given the other settings.
        smallest: u32,
        /// The largest allowed value.
        largest: u32,
    },
    /// A time that must not be zero.
    #[error("{name} must not be zero")]
    Zero {
        /// The setting.
        name: &'static str,
    },
    /// A factor that is not a number above 1.
    #[error("alpha is {alpha}: it must be a number above 1")]
    Alpha {
        /// Its value.
        alpha: f64,
    },
    /// A detector that does not exist.
    #[error("there is no detector {name:?}: there are {}", Detector::NAMES.join(", "))]
    UnknownDetector {
        /// The requested name.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detectors_are_chosen_by_name() {
        for name in Detector::NAMES {
            let detector: Detector = name.parse().unwrap();
            assert_eq!(detector.to_string(), name);
        }
        assert_eq!(
            "best".parse::<Detector>().unwrap_err().to_string(),
            "there is no detector \"best\": there are paper, size-class"
        );
        assert_eq!(Detector::default().name(), "size-class");
    }

    #[test]
    fn out_of_range_settings_are_rejected() {
        let default = MigrationConfig::default();
        assert_eq!(default.validate(), Ok(()));
        let paper = |long_window, short_window, alpha| MigrationConfig {
            detector: Detector::Paper(PaperParameters {
                long_window,
                short_window,
                alpha,
            }),
            ..default
        };
        let size_class = |short_window, confirmations| MigrationConfig {
            detector: Detector::SizeClass(SizeClassParameters {
                short_window,
                confirmations,
                ..SizeClassParameters::default()
            }),
            ..default
        };
        assert_eq!(paper(50, 10, 2.0).validate(), Ok(()));
        let wrong = [
            paper(10, 10, 2.0),
            paper(50, 0, 2.0),
            paper(50, u32::MAX, 2.0),
            paper(5000, 10, 2.0),
            paper(50, 10, 1.0),
            paper(50, 10, f64::NAN),
            size_class(65, 3),
            size_class(10, 0),
            MigrationConfig {
                probe_timeouts: 1,
                ..default
            },
            MigrationConfig {
                hysteresis: Duration::ZERO,
                ..default
            },
            MigrationConfig {
                return_after: Some(Duration::ZERO),
                ..default
            },
        ];
        for config in wrong {
            assert!(config.validate().is_err(), "{config:?}");
        }
        assert_eq!(
            paper(10, 10, 2.0).validate().unwrap_err().to_string(),
            "long_window is 10: it must be from 11 to 4096"
        );
    }
}
