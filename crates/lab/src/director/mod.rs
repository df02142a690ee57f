//! The director of a live run. It creates the hosts and the network between them, sends orders, injects
//! faults, takes samples, and produces results in the simulator's terms.
//!
//! | file | contents |
//! |---|---|
//! | `processes`, `hosts` | the host processes, and communication with them |
//! | `flows` | a scenario's flows as orders |
//! | `algorithms` | the kernel's names for the groups' congestion control |
//! | `preparation`, `resources` | from a plan to hosts that wait for orders; resources held until the end |
//! | `session`, `ending` | a run from start to end, and its results |
//! | `event_schedule`, `epochs`, `sample_rounds` | events by time and by epoch; samples of all hosts |
//! | `flow_table`, `summary` | the flows' statistics, and their summary in the results |

mod algorithms;
mod ending;
mod epochs;
mod event_schedule;
mod flow_table;
mod flows;
mod hosts;
mod preparation;
mod processes;
mod resources;
mod sample_rounds;
mod session;
mod summary;

pub use processes::HOST_COMMAND;

use weir_results::{Recorder, RunSummary};
use weir_scenario::Scenario;
use weir_units::Time;

use crate::LabError;
use crate::plan::{MachineLimits, Plan};
use crate::runs::RunDirectories;
use preparation::Preparation;

/// Checks whether a scenario can be run live on this machine. Creates nothing.
///
/// # Errors
/// Why it cannot.
pub fn check(scenario: &Scenario) -> Result<Plan, LabError> {
    let machine = MachineLimits::this().map_err(LabError::system("looking at this machine"))?;
    machine.check_rights()?;
    machine.check_network(scenario.live.network)?;
    let plan = Plan::new(scenario)?;
    let flows = scenario.groups.iter().map(weir_scenario::Group::flow_count);
    machine.check_room(&plan, flows.sum())?;
    Ok(plan)
}

/// Runs a scenario live. Everything created for it is removed, also after an error. `watch` receives the
/// run's time several times a second, and returns whether to continue.
///
/// Hosts die with the thread that calls this: call it from the program's main thread.
///
/// # Errors
/// See [`LabError`]. Everything recorded before the error stays recorded.
pub fn run(
    scenario: &Scenario,
    runs: &RunDirectories,
    recorder: &mut dyn Recorder,
    watch: &mut dyn FnMut(Time) -> bool,
) -> Result<RunSummary, LabError> {
    let plan = check(scenario)?;
    let preparation = Preparation::new(scenario, &plan, runs)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::system("starting the director's runtime"))?;
    runtime.block_on(async {
        let session = preparation.begin(recorder.wants_packets()).await?;
        session.carry_out(recorder, watch).await
    })
}
