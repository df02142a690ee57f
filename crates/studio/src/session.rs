//! The runs beside each other: `a`, and `b` where it was forked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::error::StudioError;
use crate::run::Run;
use crate::script::Script;
use crate::worker::Worker;

/// The name of the first run, and of its fork.
pub(crate) const NAMES: [&str; 2] = ["a", "b"];

/// The runs of a script.
#[derive(Debug)]
pub(crate) struct Session {
    script: Script,
    runs: Mutex<BTreeMap<&'static str, Worker>>,
}

impl Session {
    /// Creates a session with a run at time zero.
    ///
    /// # Errors
    /// The scenario has mistakes or cannot be simulated.
    pub(crate) fn new(script: Script) -> Result<Self, StudioError> {
        let session = Self {
            script,
            runs: Mutex::default(),
        };
        session.begin()?;
        Ok(session)
    }

    /// Ends all runs, and begins a new one at time zero.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub(crate) fn begin(&self) -> Result<(), StudioError> {
        let worker = start(Run::new(self.script.clone())?)?;
        let mut runs = self.lock();
        runs.clear();
        runs.insert(NAMES[0], worker);
        Ok(())
    }

    /// Returns the runs, by name.
    pub(crate) fn runs(&self) -> BTreeMap<&'static str, Worker> {
        self.lock().clone()
    }

    /// Returns a run.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn run(&self, name: &str) -> Result<Worker, StudioError> {
        let run = self.lock().get(name).cloned();
        run.ok_or_else(|| StudioError::NoRun(name.to_owned()))
    }

    /// Pauses the first run, and begins a second one that is as the first one is.
    ///
    /// # Errors
    /// There are two already.
    pub(crate) async fn fork(&self) -> Result<(), StudioError> {
        let [first, second] = NAMES;
        if self.lock().contains_key(second) {
            return Err(StudioError::TwoRuns);
        }
        let origin = self.run(first)?;
        let (script, watched, now) = origin
            .ask(|player| {
                player.play(false);
                let run = &player.run;
                (run.script().clone(), run.watched(), run.present())
            })
            .await?;
        let mut run = Run::new(script)?;
        run.watch(&watched)?;
        run.seek(now)?;
        let worker = start(run)?;
        self.lock().insert(second, worker);
        Ok(())
    }

    /// Ends the second run.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn close(&self, name: &str) -> Result<(), StudioError> {
        let is_fork = name == NAMES[1];
        let closed = is_fork.then(|| self.lock().remove(name)).flatten();
        closed
            .map(drop)
            .ok_or_else(|| StudioError::NoRun(name.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, Worker>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(run: Run) -> Result<Worker, StudioError> {
    Worker::start(run).map_err(StudioError::Serve)
}
