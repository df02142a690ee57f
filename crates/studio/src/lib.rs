//! Weir Studio: a local page on which a scenario runs, and is changed while it does.
//!
//! [`serve`] serves the page at a loopback address until it is told to stop; [`show`] serves it for
//! a finished run, [`show_live`] for a live run while it goes on, [`observe`] for an enforcer or a controller. A [`Script`] is a scenario file and the log of what was
//! changed while it ran; both together are a scenario file again, and what the page shows is always what that file gives.
//!
//! | module | content |
//! |---|---|
//! | `script` | the scenario file and the log |
//! | `knob` | what can change, with units and limits |
//! | `run` | a run in virtual time, which can be changed and simulated again |
//! | `samples` | what plots over time show |
//! | `probes` | what plots show that samples do not have: RTT, α, fairness, single flows |
//! | `digest` | the hashes of what a run gives |
//! | `packets` | the packets of a flow or a port, hop by hop |
//! | `flow_rows` | flows in the table |
//! | `finished` | the files of a finished run |
//! | `live` | a live run while it goes on |
//! | `observed` | the answers of an enforcer or a controller |
//! | `worker` | the thread on which a run goes on |
//! | `session` | the runs beside each other |
//! | `description` | what the page draws: topology, ports, groups, knobs |
//! | `server` | HTTP: the page, requests, events |

mod description;
mod digest;
mod error;
mod finished;
mod flow_rows;
mod knob;
mod live;
mod observed;
mod packets;
mod probes;
mod run;
mod samples;
mod script;
mod server;
mod session;
mod worker;

pub use error::StudioError;
pub use finished::FinishedRun;
pub use live::LiveRun;
pub use observed::ObservedKind;
pub use script::{LogEntry, Script};
pub use server::{Address, observe, serve, show, show_live, show_page};
