//! Many runs at a time, on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::SweepError;
use crate::journal::Journal;
use crate::plan::{PlannedRun, Sweep};
use crate::row::{Row, Rows};

/// Who looks on while runs are carried out, from several threads.
pub trait RunObserver: Sync {
    /// Whether to go on: asked often. Runs in flight are given up when it says no.
    fn goes_on(&self) -> bool;

    /// A run is over, and its row is in the journal.
    fn over(&self, row: &Row);
}

impl Sweep {
    /// Carries out those of the planned runs that have no row among `rows` yet, `jobs` at a time, or as
    /// many as there are cores if it is zero. Each row goes into the journal when its run is over. Gives all
    /// rows.
    ///
    /// # Errors
    /// There are no threads; the journal cannot be written, which ends the other runs too.
    pub fn carry_out_left(
        &self,
        planned: &[PlannedRun],
        rows: Rows,
        journal: &Journal,
        jobs: usize,
        watch: &dyn RunObserver,
    ) -> Result<Rows, SweepError> {
        let left: Vec<&PlannedRun> = planned.iter().filter(|run| !rows.has(&run.key)).collect();
        let rows = Mutex::new(rows);
        let failed = AtomicBool::new(false);
        let goes_on = || watch.goes_on() && !failed.load(Ordering::Relaxed);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
        pool.install(|| {
            left.into_par_iter().try_for_each(|run| {
                if !goes_on() {
                    return Ok(());
                }
                let Some(row) = self.carry_out(run, &mut || goes_on()) else {
                    return Ok(());
                };
                journal
                    .add(&row)
                    .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                watch.over(&row);
                rows.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(row);
                Ok::<(), SweepError>(())
            })
        })?;
        Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
