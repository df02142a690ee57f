//! The flows of runs, which a sweep keeps if its file says so: a file for each run, joined to one at the end.

use std::fs;
use std::path::{Path, PathBuf};

use weir_results::{OutputError, Value, is_table_column, join_flows};

use crate::SweepError;
use crate::key::RunKey;
use crate::plan::{PlannedRun, Sweep};
use crate::row::Rows;

/// The folder with a file for each run, in the directory of the sweep.
const FOLDER: &str = "flows";
/// The file with the flows of all runs.
const FLOWS: &str = "flows.parquet";

impl Sweep {
    /// Returns the file of a run's flows in a directory, if flows are kept.
    pub(crate) fn flows_path(&self, directory: &Path, key: &RunKey) -> Option<PathBuf> {
        let path = || directory.join(FOLDER).join(format!("{key}.parquet"));
        self.keeps_flows().then(path)
    }

    /// Whether a run is over: it has a row among `rows` and, unless it failed, its flows, if they are kept.
    pub fn is_done(&self, directory: &Path, rows: &Rows, run: &PlannedRun) -> bool {
        let Some(row) = rows.get(&run.key) else {
            return false;
        };
        let path = self.flows_path(directory, &run.key);
        row.error.is_some() || path.is_none_or(|path| path.exists())
    }

    /// Creates the folder of the flows, if they are kept.
    pub(crate) fn create_flows_folder(&self, directory: &Path) -> Result<(), SweepError> {
        if !self.keeps_flows() {
            return Ok(());
        }
        let path = directory.join(FOLDER);
        let created = fs::create_dir_all(&path);
        created.map_err(|source| SweepError::Output(OutputError::Create { path, source }))
    }

    /// Writes the flows of all runs that have some to one file, if they are kept: with the run's number, its seed and
    /// the values of the sweep's keys in front.
    pub(crate) fn join_flows(&self, directory: &Path, rows: &Rows) -> Result<(), SweepError> {
        if !self.keeps_flows() {
            return Ok(());
        }
        let kept = self.plan().into_iter().filter_map(|run| {
            let path = self.flows_path(directory, &run.key)?;
            let has_row = rows.get(&run.key).is_some() && path.exists();
            has_row.then(|| (cells(run), path))
        });
        let kept: Vec<_> = kept.collect();
        join_flows(&directory.join(FLOWS), &kept)?;
        Ok(())
    }
}

/// Returns the cells that tell a run's flows apart. Where flows have a column of a key's name, `sweep.` goes before it.
fn cells(run: PlannedRun) -> Vec<(String, Value)> {
    let own = [("run", run.number), ("seed", run.seed)];
    let own = own.map(|(name, number)| (name.to_owned(), Value::Count(number)));
    let inputs = run.inputs.into_iter().map(|(name, value)| {
        let is_taken = is_table_column(&name) || own.iter().any(|(own, _)| *own == name);
        let name = if is_taken {
            format!("sweep.{name}")
        } else {
            name
        };
        (name, value)
    });
    let inputs: Vec<_> = inputs.collect();
    own.into_iter().chain(inputs).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::journal::Journal;
    use crate::plan::Shard;
    use crate::row::Row;
    use crate::{RunObserver, SteadyRule, Task};

    const SCENARIO: &str = r#"
        title = "Transfers"
        source = "a test"
        duration = "20ms"
        [parameters]
        size = "10KB"
        [dumbbell]
        rate = "1Gbps"
        queue = { kind = "drop-tail", buffer = "100KB" }
        [dumbbell.senders.sender]
        rtt = "100us"
        [groups.web]
        from = "sender"
        to = "receiver"
        flows = 2
        workload = { kind = "transfer", size = "$size" }
    "#;
    const SWEEP: &str = r#"
        title = "Sizes"
        source = "a test"
        scenario = "flow.toml"
        seeds = [3]
        keep = ["flows"]
        [grid]
        "parameters.size" = ["10KB", "20KB"]
        "groups.web.congestion" = ["cubic", "nonsense"]
    "#;

    struct Unwatched;

    impl RunObserver for Unwatched {
        fn should_continue(&self) -> bool {
            true
        }
        fn on_finished(&self, _: &Row) {}
    }

    fn sweep(directory: &Path, text: &str) -> Result<Sweep, SweepError> {
        fs::write(directory.join("flow.toml"), SCENARIO).unwrap();
        let path = directory.join("sweep.toml");
        fs::write(&path, text).unwrap();
        Sweep::load(&path)
    }

    #[test]
    fn the_flows_of_all_runs_lie_in_one_file_and_lost_ones_are_made_again() {
        let place = tempfile::tempdir().unwrap();
        let sweep = sweep(place.path(), SWEEP).unwrap();
        let (plan, out) = (sweep.plan(), place.path().join("out"));
        let run = |resume| {
            let (journal, rows, _) = Journal::open(&out, Shard::WHOLE, &plan, resume).unwrap();
            let missing = plan.iter().filter(|run| !sweep.is_done(&out, &rows, run));
            let missing = missing.count();
            let all = sweep.execute_remaining(&plan, rows, &journal, 1, &Unwatched);
            all.unwrap();
            sweep.write_dataset(&out).unwrap();
            missing
        };
        assert_eq!(run(false), 4);
        let file = File::open(out.join(FLOWS)).unwrap();
        let rows = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = rows
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        // Two runs, and two that cannot be simulated.
        assert_eq!(rows.len(), 4);
        let cells = |row: usize| {
            let cells = rows[row].get_column_iter().take(5);
            let cells = cells.map(|(name, value)| format!("{name} {value}"));
            cells.collect::<Vec<_>>().join(", ")
        };
        let first = "run 0, seed 3, sweep.size_bytes 10000, congestion \"cubic\", group \"web\"";
        assert_eq!(cells(0), first);
        assert!(cells(3).starts_with("run 2, seed 3, sweep.size_bytes 20000"));

        assert_eq!(run(true), 0);
        fs::remove_file(sweep.flows_path(&out, &plan[2].key).unwrap()).unwrap();
        assert_eq!(run(true), 1);
        assert!(sweep.flows_path(&out, &plan[2].key).unwrap().exists());
    }

    #[test]
    fn flows_need_whole_runs_on_this_machine() {
        let place = tempfile::tempdir().unwrap();
        let text = format!("{SWEEP}[early_stop]\nbatch = \"1ms\"\n");
        let error = sweep(place.path(), &text).unwrap_err().to_string();
        assert!(error.contains("remove `early_stop`"), "{error}");
        let unknown = SWEEP.replace("\"flows\"", "\"samples\"");
        let error = sweep(place.path(), &unknown).unwrap_err().to_string();
        assert!(error.contains("flows"), "{error}");
        let sweep = sweep(place.path(), SWEEP).unwrap();
        assert!(Task::of(&sweep, &sweep.plan()[0]).is_err());
        assert!(sweep.with_steady(Some(SteadyRule::default())).is_err());
    }
}
