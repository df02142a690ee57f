//! Why the studio cannot do what it was asked for.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use weir_results::OutputError;
use weir_scenario::ScenarioError;
use weir_sim::{BuildError, RunError};

/// A request that cannot be fulfilled, or a run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StudioError {
    /// The scenario has mistakes, or a change does not fit it.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario cannot be written as a file.
    #[error("the scenario cannot be written: {0}")]
    Written(#[from] toml::ser::Error),
    /// It cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The simulation failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoRun(String),
    /// There are two already.
    #[error("two runs are beside each other already: close one first")]
    TwoRuns,
    /// There is no such knob.
    #[error("there is no knob `{0}`")]
    NoKnob(String),
    /// The value is beyond the knob's limits.
    #[error("{key}: {value} is not between {minimum} and {maximum}")]
    Value {
        /// The knob's key.
        key: &'static str,
        /// The value.
        value: f64,
        /// The smallest value.
        minimum: f64,
        /// The largest one.
        maximum: f64,
    },
    /// A link is told to fail that has failed.
    #[error("the link {0} has failed already")]
    HasFailed(String),
    /// A link is restored that has not failed.
    #[error("the link {0} has not failed")]
    HasNotFailed(String),
    /// The run is over: nothing can change any more.
    #[error("the run has ended: go back in time to change something")]
    Ended,
    /// Nothing was changed.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// A time is not one of the run.
    #[error("{0} s is not a time of the run")]
    Time(f64),
    /// A speed is not positive.
    #[error("{0} is no speed: virtual seconds for each second, above zero")]
    Speed(f64),
    /// A run's files cannot be written.
    #[error("cannot write the run's files: {0}")]
    Files(#[source] io::Error),
    /// A run's files cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A file of a finished run cannot be read.
    #[error("{}: {reason}; `weir run --out` writes such files", path.display())]
    Finished {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A finished or a live run is told to change.
    #[error("the run can only be looked at")]
    IsFinished,
    /// A live run that goes on is asked for its result.
    #[error("the run goes on: its summary comes when it is over")]
    IsRunning,
    /// There is no such flow.
    #[error(
        "there is no flow `{0}`: a flow is called as its group, a slash, and its number, such as `web/3`"
    )]
    NoFlow(String),
    /// There is no such port.
    #[error("there is no port `{0}`")]
    NoPort(String),
    /// Packets of nobody are asked for.
    #[error("say whose packets: `flow` or `port`")]
    NoSubject,
    /// More flows are to be watched than can be shown.
    #[error("at most {0} flows are plotted at once")]
    TooManyFlows(usize),
    /// The run's thread has ended.
    #[error("the run has stopped")]
    Stopped,
    /// The address cannot be used.
    #[error("cannot listen at {address}: {source}; another port may be free")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The page cannot be served.
    #[error("cannot serve the page: {0}")]
    Serve(#[source] io::Error),
}
