//! The thread on which a run goes on. It works in short slices, and answers between them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;
use weir_units::{Duration, Time};

use crate::error::StudioError;
use crate::probes::Probes;
use crate::run::Run;
use crate::samples::Samples;
use crate::script::seconds;

/// How long a slice may take: what is asked meanwhile waits.
const SLICE: std::time::Duration = std::time::Duration::from_millis(15);
/// How often a run at a chosen speed goes on.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Playing,
    Paused,
    /// It is simulated again up to where it was.
    Replaying,
    Ended,
    Failed,
}

/// A run, and how it goes on.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) run: Run,
    is_playing: bool,
    /// Virtual seconds for each second; none for as fast as possible.
    speed: Option<f64>,
    /// When the run began to go on at its speed: the two clocks.
    since: (Instant, Time),
    /// The virtual time of a slice.
    slice: Duration,
    error: Option<String>,
    /// From when on the past was rewritten, each time that it was.
    rewritten: Vec<f64>,
    /// How often other flows were chosen to be watched.
    watches: usize,
}

/// How much a viewer has seen of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cursor {
    /// The time of its last sample.
    time: f64,
    /// The time of the last look at flows.
    probed: f64,
    /// How many times the past has been rewritten.
    rewritten: usize,
    /// Whose flows it has seen; none before the first news.
    watches: Option<usize>,
}

impl Cursor {
    /// Nothing.
    pub(crate) const START: Self = Self {
        time: -1.0,
        probed: -1.0,
        rewritten: 0,
        watches: None,
    };
}

/// What a viewer has not seen.
#[derive(Debug)]
pub(crate) struct News {
    /// From when on what it has seen no longer holds.
    pub(crate) reset: Option<f64>,
    pub(crate) samples: Samples,
    /// The flows that are watched, if they are others: what was seen of them comes anew.
    pub(crate) watched: Option<Vec<String>>,
    pub(crate) probes: Probes,
}

impl Player {
    fn new(run: Run) -> Self {
        let since = (Instant::now(), run.now());
        Self {
            slice: run.step(),
            run,
            is_playing: false,
            speed: None,
            since,
            error: None,
            rewritten: Vec::new(),
            watches: 0,
        }
    }

    pub(crate) fn status(&self) -> Status {
        match () {
            () if self.error.is_some() => Status::Failed,
            () if self.run.replay_until().is_some() => Status::Replaying,
            () if self.run.is_over() => Status::Ended,
            () if self.is_playing => Status::Playing,
            () => Status::Paused,
        }
    }

    pub(crate) fn speed(&self) -> Option<f64> {
        self.speed
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn play(&mut self, is_playing: bool) {
        self.is_playing = is_playing;
        self.set_clocks();
    }

    /// Sets the speed, in virtual seconds for each second; none is as fast as possible.
    ///
    /// # Errors
    /// It is not positive.
    pub(crate) fn set_speed(&mut self, speed: Option<f64>) -> Result<(), StudioError> {
        match speed {
            Some(speed) if !(speed.is_finite() && speed > 0.0) => Err(StudioError::Speed(speed)),
            speed => {
                self.speed = speed;
                self.set_clocks();
                Ok(())
            }
        }
    }

    /// Goes on by one step, or by this time, and pauses.
    pub(crate) fn step(&mut self, by: Option<Duration>) -> Result<(), StudioError> {
        self.is_playing = false;
        let by = by.unwrap_or_else(|| self.run.step());
        self.run.seek(self.run.present() + by)
    }

    /// Goes to a time, and pauses if that is a way back.
    pub(crate) fn seek(&mut self, to: Time) -> Result<(), StudioError> {
        if to < self.run.present() {
            self.is_playing = false;
            self.rewritten.push(seconds(to));
        }
        self.error = None;
        self.run.seek(to)
    }

    /// Takes the last change back.
    pub(crate) fn undo(&mut self) -> Result<(), StudioError> {
        let from = self.run.undo()?;
        self.rewritten.push(seconds(from));
        Ok(())
    }

    /// Watches these flows; see [`Run::watch`].
    pub(crate) fn watch(&mut self, flows: &[String]) -> Result<(), StudioError> {
        self.run.watch(flows)?;
        self.watches += 1;
        Ok(())
    }

    /// Returns what is new since a viewer looked last: at most this number of samples.
    pub(crate) fn news(&self, cursor: &mut Cursor, most: usize) -> News {
        let rewritten = self.rewritten.get(cursor.rewritten..).unwrap_or_default();
        let reset = rewritten.iter().copied().reduce(f64::min);
        cursor.rewritten = self.rewritten.len();
        if let Some(from) = reset {
            cursor.time = cursor.time.min(from.next_down());
            cursor.probed = cursor.probed.min(from.next_down());
        }
        let watched = (cursor.watches != Some(self.watches)).then(|| self.run.watched());
        if watched.is_some() {
            (cursor.watches, cursor.probed) = (Some(self.watches), -1.0);
        }
        let all = &self.run.recording().samples;
        let samples = all.since(all.upto(cursor.time), most);
        if let Some(last) = samples.time.last() {
            cursor.time = *last;
        }
        let probes = self.run.prober().probes().after(cursor.probed);
        if let Some(last) = probes.time.last() {
            cursor.probed = *last;
        }
        News {
            reset,
            samples,
            watched,
            probes,
        }
    }

    fn set_clocks(&mut self) {
        self.since = (Instant::now(), self.run.now());
    }

    fn is_busy(&self) -> bool {
        matches!(self.status(), Status::Playing | Status::Replaying)
    }

    /// Returns up to when the run may go on now.
    fn due(&self) -> Time {
        match self.speed {
            // A way to a time is gone as fast as possible.
            Some(speed) if self.run.replay_until().is_none() => {
                let (begun, from) = self.since;
                from + Duration::from_secs_f64(begun.elapsed().as_secs_f64() * speed)
            }
            _ => Time::MAX,
        }
    }

    /// Works for a slice. Returns how long to wait then.
    fn go_on(&mut self) -> std::time::Duration {
        let begun = Instant::now();
        let was_replaying = self.run.replay_until().is_some();
        while self.is_busy() && begun.elapsed() < SLICE {
            let now = self.run.now();
            let until = (now + self.slice).min(self.due());
            if until <= now {
                return PAUSE;
            }
            let before = Instant::now();
            if let Err(error) = self.run.advance(until) {
                self.error = Some(error.to_string());
                return std::time::Duration::ZERO;
            }
            self.adapt(before.elapsed());
        }
        if was_replaying && self.run.replay_until().is_none() {
            self.set_clocks();
        }
        std::time::Duration::ZERO
    }

    /// Chooses the virtual time of the next slice by how long the last one took.
    fn adapt(&mut self, took: std::time::Duration) {
        if took > SLICE / 2 {
            self.slice = (self.slice / 2).max(Duration::from_nanos(1_000));
        } else if took < SLICE / 8 {
            let longest = self.run.end().since(Time::ZERO) / 20;
            self.slice = (self.slice * 2).min(longest.max(self.run.step()));
        }
    }
}

/// Something to do on the thread.
type Task = Box<dyn FnOnce(&mut Player) + Send>;

/// The thread of a run. It ends with the last handle.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    tasks: Arc<Sender<Task>>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(run: Run) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let player = Player::new(run);
        thread::Builder::new()
            .name("weir-studio-run".to_owned())
            .spawn(move || work(player, &receiver))?;
        Ok(Self {
            tasks: Arc::new(sender),
        })
    }

    /// Whether both are handles of one run.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tasks, &other.tasks)
    }

    /// Lets the thread do something with the run, and returns its result.
    ///
    /// # Errors
    /// The thread has ended.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Player) -> T + Send + 'static,
    ) -> Result<T, StudioError> {
        let (answer, answered) = oneshot::channel();
        let task: Task = Box::new(move |player| {
            // Who asked may be gone.
            let _ = answer.send(act(player));
        });
        self.tasks.send(task).map_err(|_| StudioError::Stopped)?;
        answered.await.map_err(|_| StudioError::Stopped)
    }
}

fn work(mut player: Player, tasks: &Receiver<Task>) {
    let mut pause = std::time::Duration::ZERO;
    loop {
        let task = if !player.is_busy() {
            tasks.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else if pause.is_zero() {
            tasks.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
        } else {
            tasks.recv_timeout(pause)
        };
        match task {
            Ok(task) => task(&mut player),
            Err(RecvTimeoutError::Timeout) => pause = player.go_on(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
