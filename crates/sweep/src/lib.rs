//! Sweeps: one scenario under thousands of settings, on all cores, resumable.
//!
//! A [`Sweep`] is read from a file (`docs/sweeps.md`): a scenario, and a grid or a sample over any of its
//! keys. It is a list of [`PlannedRun`]s, each with a [`RunKey`] that hashes everything that determines
//! its result. Each run gives a [`Row`], here on all cores ([`Sweep::execute_remaining`]) or elsewhere as a
//! [`Task`]. A row is added to a [`Journal`] at once. The rows of a directory's journals form a
//! [`Dataset`](weir_results::Dataset), a Parquet file with one row per run.
//!
//! ```
//! use weir_sweep::{Rows, Sweep};
//!
//! # let directory = tempfile::tempdir()?;
//! # let scenario = r#"
//! # title = "A flow"
//! # source = "an example"
//! # duration = "2ms"
//! # [dumbbell]
//! # rate = "1Gbps"
//! # queue = { kind = "drop-tail", buffer = "100KB" }
//! # [dumbbell.senders.sender]
//! # rtt = "100us"
//! # [groups.cubic]
//! # from = "sender"
//! # to = "receiver"
//! # workload = "bulk"
//! # "#;
//! # std::fs::write(directory.path().join("flow.toml"), scenario)?;
//! # let path = directory.path().join("sweep.toml");
//! # std::fs::write(&path, r#"
//! # title = "Rates"
//! # source = "an example"
//! # scenario = "flow.toml"
//! # [grid]
//! # "dumbbell.rate" = ["1Gbps", "2Gbps"]
//! # "#)?;
//! let sweep = Sweep::load(&path)?;
//! let mut rows = Rows::default();
//! for planned in sweep.plan() {
//!     rows.push(sweep.execute(&planned, &mut || true));
//! }
//! let dataset = rows.dataset(&sweep);
//! assert_eq!(dataset.rows(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod dataset;
mod error;
mod execution;
mod executor;
mod flows;
mod journal;
mod key;
mod plan;
mod reuse;
mod row;
mod steady;
mod task;

pub use code::{Code, CodeVersion};
pub use dataset::WrittenDataset;
pub use error::SweepError;
pub use execution::thread_time;
pub use executor::RunObserver;
pub use journal::Journal;
pub use key::RunKey;
pub use plan::{Axis, PlannedRun, Shard, Sweep};
pub use reuse::RowReuse;
pub use row::{Row, Rows};
pub use steady::{SteadyRule, SteadyStateDetector};
pub use task::{Task, TaskError};
