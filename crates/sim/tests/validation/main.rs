//! The simulator against known results: closed forms of the literature, its own guarantees, and the
//! observations of Vargas et al. `docs/validation.md` has the numbers.
//!
//! | file | against |
//! |---|---|
//! | `dctcp` | the DCTCP paper's model of synchronized flows |
//! | `cubic` | RFC 9438's window over an epoch |
//! | `newreno` | the 1/sqrt(p) law |
//! | `queueing` | M/D/1 |
//! | `windows` | slow start and the receive window, in closed form |
//! | `scheduled` | CoDel's target, and strict priorities |
//! | `sharing` | sections 6.3 and 6.4 of Vargas et al. |
//! | `algorithms` | every congestion control, end to end |
//! | `dcudp` | CUBIC on networks that do not mark; equal shares for unequal round trips |
//! | `determinism` | same seed, same bytes |
//! | `threads` | the same bytes with any number of threads |
//! | `running_ahead` | the same with one event for each arrival |
//! | `arrivals` | random arrivals by host, incasts, and traces |
//! | `changes` | changes of settings, at their times |
//! | `spraying` | packets over equal paths, by flow and at random |
//! | `conservation` | packets and bytes of random scenarios |
//! | `load` | the load that was asked for, on hosts' links and between switches |
//! | `slowdown` | transfers on the empty network, by hand |
//! | `sed` | section 5.2 of Lu's SED |
//! | `quic`, `migration` | the DCQUIC engine in virtual time |
//! | `observe` | helpers: a run's summary and samples |

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed; tables of measurements are printed for readers"
)]

mod algorithms;
mod arrivals;
mod bursts;
mod changes;
mod conservation;
mod cubic;
mod dctcp;
mod dcudp;
mod determinism;
mod load;
mod migration;
mod newreno;
mod observe;
mod queueing;
mod quic;
mod requests;
mod running_ahead;
mod scheduled;
mod sed;
mod sharing;
mod slowdown;
mod spraying;
mod threads;
mod windows;
