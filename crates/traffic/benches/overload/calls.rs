//! The calls in a closed loop: each slot has one call open, and begins the next one when that has ended.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use weir_traffic::calls::Summary;
use weir_units::Duration;

use crate::Plan;

/// The bytes of a request: the call's number and the response's size, 4 bytes each.
pub(crate) const REQUEST: usize = 8;
/// The bytes of a number, which begins a response.
const NUMBER: usize = 4;
/// The possible sizes of a response in bytes.
pub(crate) const SIZES: RangeInclusive<u32> = NUMBER as u32..=16 * 1024 * 1024;

/// Failures and how often they happened.
pub(crate) type Failures = BTreeMap<String, u64>;

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Call {
    number: u32,
    size: u32,
    slot: usize,
    /// Whether it is the first one in its slot, and so began at the same time as those in all others.
    is_first: bool,
}

impl Call {
    pub(crate) fn request(&self) -> [u8; REQUEST] {
        let mut request = [0; REQUEST];
        request[..NUMBER].copy_from_slice(&self.number.to_le_bytes());
        request[NUMBER..].copy_from_slice(&self.size.to_le_bytes());
        request
    }

    /// Checks the response by its length and its number.
    pub(crate) fn check(&self, response: &[u8]) -> Result<(), String> {
        if response.len() != self.size as usize {
            return Err("a response of the wrong length".to_owned());
        }
        if !response.starts_with(&self.number.to_le_bytes()) {
            return Err("the response of another call".to_owned());
        }
        Ok(())
    }
}

/// What a server reads in a request: the beginning of the response, and its length in bytes. `None` if it
/// is malformed.
pub(crate) fn read_request(request: &[u8]) -> Option<([u8; NUMBER], u32)> {
    let request: &[u8; REQUEST] = request.try_into().ok()?;
    let (number, size) = request.split_first_chunk()?;
    let size = u32::from_le_bytes(size.try_into().ok()?);
    SIZES.contains(&size).then_some((*number, size))
}

/// Returns the response to a request in pieces: its number, and zeroes that all responses share, as over
/// TCP. `None` if the request is malformed.
pub(crate) fn respond(request: &[u8]) -> Option<[Bytes; 2]> {
    static ZEROES: LazyLock<Bytes> = LazyLock::new(|| vec![0; *SIZES.end() as usize].into());
    let (number, size) = read_request(request)?;
    let rest = ZEROES.slice(..size as usize - NUMBER);
    Some([Bytes::copy_from_slice(&number), rest])
}

/// The calls of a run.
pub(crate) struct Calls {
    size: u32,
    end: Instant,
    next: AtomicU32,
    record: Mutex<Record>,
}

struct Record {
    /// When the call in each slot has begun.
    open: Vec<Option<Instant>>,
    /// In nanoseconds, of answered calls that were the first ones in their slots.
    first: Vec<u64>,
    /// The same of all later calls.
    later: Vec<u64>,
    /// Calls that were answered before the end.
    in_time: usize,
    errors: Failures,
}

/// What became of the calls.
pub(crate) struct Outcome {
    /// Calls that were answered, ever.
    pub(crate) answered: usize,
    /// Those that were answered while calls began.
    pub(crate) in_time: usize,
    /// The times of answered calls, and the ages of those without an answer. `None` without calls.
    pub(crate) times: Option<Summary>,
    /// The times of answered calls that were the first ones in their slots.
    pub(crate) first: Option<Summary>,
    /// The times of all later ones.
    pub(crate) later: Option<Summary>,
    pub(crate) errors: Failures,
    /// Calls without an answer or an error.
    pub(crate) unanswered: usize,
    /// The age of the oldest of them.
    pub(crate) oldest: Option<Duration>,
}

impl Calls {
    /// Calls begin from now on.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            size: plan.size,
            end: Instant::now() + std::time::Duration::from(plan.span),
            next: AtomicU32::new(0),
            record: Mutex::new(Record {
                open: vec![None; plan.connections * plan.calls],
                first: Vec::new(),
                later: Vec::new(),
                in_time: 0,
                errors: Failures::new(),
            }),
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the first call in this slot; `None` when none begin any more.
    pub(crate) fn begin(&self, slot: usize) -> Option<Call> {
        self.begin_one(slot, true)
    }

    fn begin_one(&self, slot: usize, is_first: bool) -> Option<Call> {
        let now = Instant::now();
        if now >= self.end {
            return None;
        }
        self.record().open[slot] = Some(now);
        Some(Call {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            size: self.size,
            slot,
            is_first,
        })
    }

    /// Ends a call, with an answer or not. Returns the next one in its slot; `None` after an error, or when
    /// none begin any more.
    pub(crate) fn end(&self, call: &Call, answered: Result<(), String>) -> Option<Call> {
        let now = Instant::now();
        {
            let mut record = self.record();
            let begun = record.open[call.slot].take()?;
            if let Err(error) = answered {
                *record.errors.entry(error).or_default() += 1;
                return None;
            }
            let time = (now - begun).as_nanos() as u64;
            if call.is_first {
                record.first.push(time);
            } else {
                record.later.push(time);
            }
            record.in_time += usize::from(now < self.end);
        }
        self.begin_one(call.slot, false)
    }

    /// Returns what became of the calls until now.
    pub(crate) fn outcome(&self) -> Outcome {
        let now = Instant::now();
        let record = &mut *self.record();
        let ages = record.open.iter().flatten().map(|begun| now - *begun);
        let ages: Vec<u64> = ages.map(|age| age.as_nanos() as u64).collect();
        let answered = record.first.len() + record.later.len();
        let mut times = [&record.first[..], &record.later, &ages].concat();
        Outcome {
            answered,
            in_time: record.in_time,
            times: Summary::of(&mut times),
            first: Summary::of(&mut record.first),
            later: Summary::of(&mut record.later),
            errors: record.errors.clone(),
            unanswered: ages.len(),
            oldest: ages.iter().max().map(|age| Duration::from_nanos(*age)),
        }
    }
}
