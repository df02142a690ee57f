//! Parallel execution of runs on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::SweepError;
use crate::journal::Journal;
use crate::plan::{PlannedRun, Sweep};
use crate::row::{Row, Rows};

/// An observer of runs, called from several threads.
pub trait RunObserver: Sync {
    /// Returns whether to continue; called often. If false, runs in progress are dropped.
    fn should_continue(&self) -> bool;

    /// Reports a finished run whose row is in the journal.
    fn on_finished(&self, row: &Row);
}

impl Sweep {
    /// Executes the planned runs that have no row among `rows` yet, `jobs` at a time, or one per core if it
    /// is zero. Each row is added to the journal when its run ends. Returns all rows.
    ///
    /// # Errors
    /// Threads cannot be created; the journal or a file of flows cannot be written, which ends the other runs too.
    pub fn execute_remaining(
        &self,
        planned: &[PlannedRun],
        rows: Rows,
        journal: &Journal,
        jobs: usize,
        watch: &dyn RunObserver,
    ) -> Result<Rows, SweepError> {
        let left: Vec<&PlannedRun> = (planned.iter())
            .filter(|run| !self.is_done(journal.directory(), &rows, run))
            .collect();
        self.create_flows_folder(journal.directory())?;
        let rows = Mutex::new(rows);
        let failed = AtomicBool::new(false);
        let goes_on = || watch.should_continue() && !failed.load(Ordering::Relaxed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
        pool.install(|| {
            left.into_par_iter().try_for_each(|run| {
                if !goes_on() {
                    return Ok(());
                }
                let done = self.execute_in(journal.directory(), run, &mut || goes_on());
                let done = done.inspect_err(|_| failed.store(true, Ordering::Relaxed));
                let Some(row) = done? else {
                    return Ok(());
                };
                journal
                    .add(&row)
                    .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                watch.on_finished(&row);
                rows.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(row);
                Ok::<(), SweepError>(())
            })
        })?;
        Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
