//! A live run from the outside: makes the hosts and the network between them, gives orders, brings faults
//! about, observes, and puts the results together in the simulator's terms.
//!
//! | file | what it tells |
//! |---|---|
//! | `processes`, `hosts` | host processes, and talking to them |
//! | `flows` | a scenario's flows as orders |
//! | `algorithms` | what the kernel's TCP calls the groups' congestion control |
//! | `preparation`, `resources` | from a plan to hosts that wait for their orders; what a run holds on to |
//! | `session`, `ending` | a run from its beginning to its end, and its results |
//! | `script`, `epochs`, `rounds` | what happens, by time and by epoch; questions to all hosts |
//! | `books`, `summary` | what flows achieved, and what results report of it |

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

/// Whether a scenario can be run live on this machine. Nothing is made.
///
/// # Errors
/// What is in the way.
pub fn check(scenario: &Scenario) -> Result<Plan, LabError> {
    let machine = MachineLimits::this().map_err(LabError::system("looking at this machine"))?;
    machine.check_rights()?;
    machine.check_network(scenario.live.network)?;
    let plan = Plan::new(scenario)?;
    let flows = scenario.groups.iter().map(weir_scenario::Group::flow_count);
    machine.check_room(&plan, flows.sum())?;
    Ok(plan)
}

/// Runs a scenario live, and removes all that it made for that, whatever comes. `watch` is told the
/// run's time several times a second, and says whether to go on.
///
/// Hosts die with the thread that calls this: it should be the program's first.
///
/// # Errors
/// See [`LabError`]. What was recorded by then has been recorded.
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
