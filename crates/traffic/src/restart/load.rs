//! The arrivals of calls, in an open loop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use weir_net::tls::Identity;

use super::clients::Clients;
use super::report::{Outcome, Sample};
use super::{Plan, sleep_until};
use crate::calls::error::Error;
use crate::calls::mix::poisson::Poisson;

/// The time between the last client's meeting and the first arrival.
const SETTLE: Duration = Duration::from_millis(200);

/// A call that has arrived.
struct Arrival {
    /// The time from the beginning at which the call was to arrive.
    at: Duration,
    client: usize,
}

/// Lets all clients meet the server, says when the calls begin, and returns when all have ended.
pub(super) async fn run(
    plan: &Plan,
    server: SocketAddr,
    trusted: &Identity,
    ready: &Sender<Instant>,
) -> Result<Vec<Sample>, Error> {
    let clients = Arc::new(Clients::new(plan, server, trusted)?);
    clients.meet(plan.clients).await?;
    let begin = Instant::now() + SETTLE;
    if ready.send(begin).is_err() {
        return Ok(Vec::new());
    }
    let (arrive, mut arrivals) = unbounded_channel();
    let pacing = plan.clone();
    let pacer = thread::spawn(move || pace(&pacing, begin, &arrive));
    let (report, mut reports) = unbounded_channel();
    let room = Arc::new(Semaphore::new(plan.concurrent));
    // The first numbers are those of the meetings.
    for number in plan.clients as u64.. {
        let Some(Arrival { at, client }) = arrivals.recv().await else {
            break;
        };
        let sample = move |(outcome, start)| Sample {
            number,
            arrival: at.into(),
            elapsed: begin.elapsed().saturating_sub(at).into(),
            outcome,
            start,
        };
        // A late start leaves less time.
        let deadline = at + Duration::from(plan.deadline);
        let limit = deadline.saturating_sub(begin.elapsed());
        let permit = room.clone().try_acquire_owned();
        let (Ok(permit), false) = (permit, limit.is_zero()) else {
            // The receiver lives as long as this task.
            let _ = report.send(sample((Outcome::NotStarted, None)));
            continue;
        };
        let (clients, report) = (clients.clone(), report.clone());
        tokio::spawn(async move {
            let called = clients.call(client, number, limit).await;
            let _ = report.send(sample(called));
            drop(permit);
        });
    }
    drop(report);
    let mut samples = Vec::new();
    while let Some(sample) = reports.recv().await {
        samples.push(sample);
    }
    pacer
        .join()
        .map_err(|_| Error::transport("pacing the calls", "the thread panicked"))?;
    Ok(samples)
}

/// Sends the calls when they arrive. A thread of its own sleeps to the resolution of the kernel's timers.
fn pace(plan: &Plan, begin: Instant, arrive: &UnboundedSender<Arrival>) {
    let mut random = Pcg64Mcg::seed_from_u64(plan.seed.wrapping_add(1));
    let end = plan.before + plan.after;
    let times = Poisson::new(plan.seed, plan.rate_per_s).take_while(|time| *time < end);
    for time in times {
        let at = Duration::from(time);
        sleep_until(begin + at);
        let client = (random.next_u64() % plan.clients.max(1) as u64) as usize;
        if arrive.send(Arrival { at, client }).is_err() {
            return;
        }
    }
}
