//! A run: a scenario in virtual time, whose past follows from its script alone. A change is added to the script, and the
//! run is simulated again up to where it was: what is seen is always what the saved file gives.

use weir_results::RunSummary;
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::{Duration, Time};

use crate::error::StudioError;
use crate::knob::{Knob, Link};
use crate::probes::{MOST_WATCHED, Prober, WatchedFlow};
use crate::samples::Recording;
use crate::script::{LogEntry, Script, seconds};

/// A run and its script.
#[derive(Debug)]
pub(crate) struct Run {
    script: Script,
    knobs: Vec<Knob>,
    links: Vec<Link>,
    simulation: Simulation,
    recording: Recording,
    prober: Prober,
    /// Up to where the run is simulated again after a change; none when it is there.
    replay_until: Option<Time>,
}

/// The virtual time that one step without a length covers: this part of the run.
const STEPS: u64 = 1_000;

impl Run {
    /// Creates a run at time zero.
    ///
    /// # Errors
    /// The scenario has mistakes or cannot be simulated.
    pub(crate) fn new(script: Script) -> Result<Self, StudioError> {
        let scenario = script.scenario()?;
        let (knobs, links) = (Knob::all(&scenario), Link::all(&scenario));
        let (simulation, recording, prober) = begin(scenario, Vec::new())?;
        Ok(Self {
            script,
            knobs,
            links,
            simulation,
            recording,
            prober,
            replay_until: None,
        })
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    pub(crate) fn log(&self) -> &[LogEntry] {
        self.script.log()
    }

    pub(crate) fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        self.simulation.scenario()
    }

    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    pub(crate) fn prober(&self) -> &Prober {
        &self.prober
    }

    /// Returns the time up to which the run has come.
    pub(crate) fn now(&self) -> Time {
        self.simulation.now()
    }

    /// Returns the time at which the run is for its viewers: while it is simulated again, where it will be then.
    pub(crate) fn present(&self) -> Time {
        self.replay_until.unwrap_or(self.now())
    }

    /// Returns when the run ends.
    pub(crate) fn end(&self) -> Time {
        self.simulation.end()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.now() >= self.end()
    }

    /// Returns up to where the run is simulated again, if it is.
    pub(crate) fn replay_until(&self) -> Option<Time> {
        self.replay_until
    }

    /// Returns a step of the run.
    pub(crate) fn step(&self) -> Duration {
        let whole = self.end().since(Time::ZERO);
        (whole / STEPS).max(Duration::from_nanos(1))
    }

    /// Simulates up to a time.
    ///
    /// # Errors
    /// The simulation fails.
    pub(crate) fn advance(&mut self, until: Time) -> Result<(), StudioError> {
        let until = match self.replay_until {
            Some(target) => until.min(target),
            None => until,
        };
        loop {
            let next = self.prober.next();
            let stop = until.min(next);
            self.simulation.advance(stop, &mut self.recording)?;
            if stop == next && self.now() == next {
                self.prober.look(&self.simulation);
            }
            if stop == until || self.is_over() {
                break;
            }
        }
        if self.replay_until.is_some_and(|target| self.now() >= target) || self.is_over() {
            self.replay_until = None;
        }
        Ok(())
    }

    /// Goes to a time: forward, or back by simulating again from the start. The caller advances the run until
    /// [`Self::replay_until`] is none.
    ///
    /// # Errors
    /// The scenario cannot be simulated.
    pub(crate) fn seek(&mut self, to: Time) -> Result<(), StudioError> {
        let to = to.min(self.end());
        if to < self.now() {
            self.begin_again(self.script.scenario()?)?;
        }
        self.replay_until = (to > self.now()).then_some(to);
        Ok(())
    }

    /// Gives a knob a value from now on. Until the run is where it was, it is simulated again.
    ///
    /// # Errors
    /// The value does not fit; then nothing has changed.
    pub(crate) fn set(&mut self, knob: &str, value: f64) -> Result<(), StudioError> {
        let knob = self.knob(knob)?.clone();
        if !knob.takes(value) {
            return Err(StudioError::Value {
                key: knob.key,
                value,
                minimum: knob.range.minimum,
                maximum: knob.range.maximum,
            });
        }
        self.change(|script, now| {
            script.set(now, &knob, value);
            Ok(())
        })
    }

    /// Fails a link, or ends its failure.
    ///
    /// # Errors
    /// It has failed already, or has not; then nothing has changed.
    pub(crate) fn set_link(&mut self, id: &str, fails: bool) -> Result<(), StudioError> {
        let mut links = self.links.iter();
        let link = links.find(|known| known.id == id).cloned();
        let link = link.ok_or_else(|| StudioError::NoKnob(id.to_owned()))?;
        self.change(|script, now| {
            if fails {
                script.fail(now, &link)
            } else {
                script.restore(now, &link)
            }
        })
    }

    /// Takes the last change back. Returns from when on the run is another one.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn undo(&mut self) -> Result<Time, StudioError> {
        let mut script = self.script.clone();
        let from = script.undo().ok_or(StudioError::NothingToUndo)?;
        self.replace(script)?;
        Ok(from)
    }

    fn knob(&self, id: &str) -> Result<&Knob, StudioError> {
        let mut knobs = self.knobs.iter();
        let found = knobs.find(|knob| knob.id == id);
        found.ok_or_else(|| StudioError::NoKnob(id.to_owned()))
    }

    fn change(
        &mut self,
        act: impl FnOnce(&mut Script, Time) -> Result<(), StudioError>,
    ) -> Result<(), StudioError> {
        let present = self.present();
        if present >= self.end() {
            return Err(StudioError::Ended);
        }
        let mut script = self.script.clone();
        act(&mut script, present)?;
        self.replace(script)
    }

    /// Begins anew with another script, to be simulated up to where the run is.
    fn replace(&mut self, script: Script) -> Result<(), StudioError> {
        let present = self.present();
        self.begin_again(script.scenario()?)?;
        self.script = script;
        self.replay_until = (present > self.now()).then_some(present);
        Ok(())
    }

    fn begin_again(&mut self, scenario: Scenario) -> Result<(), StudioError> {
        let begun = begin(scenario, self.prober.watched().to_vec())?;
        (self.simulation, self.recording, self.prober) = begun;
        Ok(())
    }

    /// Watches these flows from the start on: until the run is where it was, it is simulated again.
    ///
    /// # Errors
    /// There are too many, or there is no such flow; then nothing has changed.
    pub(crate) fn watch(&mut self, flows: &[String]) -> Result<(), StudioError> {
        if flows.len() > MOST_WATCHED {
            return Err(StudioError::TooManyFlows(MOST_WATCHED));
        }
        let flows = flows.iter();
        let watched = flows.map(|name| WatchedFlow::find(self.scenario(), name));
        let watched = watched.collect::<Result<Vec<_>, _>>()?;
        let present = self.present();
        let begun = begin(self.script.scenario()?, watched)?;
        (self.simulation, self.recording, self.prober) = begun;
        self.replay_until = (present > self.now()).then_some(present);
        Ok(())
    }

    /// Returns the names of the flows that are watched.
    pub(crate) fn watched(&self) -> Vec<String> {
        let watched = self.prober.watched().iter();
        watched.map(|flow| flow.name.clone()).collect()
    }

    /// Returns the IDs of the links that have been failed and not restored.
    pub(crate) fn failed(&self) -> Vec<String> {
        self.script.failed(self.present())
    }

    /// Returns the summary so far.
    pub(crate) fn summary(&mut self) -> RunSummary {
        self.simulation.summary()
    }

    pub(crate) fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Returns the present values of the knobs that have been turned, by their IDs.
    pub(crate) fn turned(&self) -> impl Iterator<Item = (&str, f64)> {
        let now = seconds(self.present());
        let log = self.log().iter().filter(move |entry| entry.at <= now);
        log.filter_map(|entry| Some((entry.knob.as_str(), entry.value?)))
    }
}

fn begin(
    scenario: Scenario,
    watched: Vec<WatchedFlow>,
) -> Result<(Simulation, Recording, Prober), StudioError> {
    let recording = Recording::new(&scenario);
    let prober = Prober::new(&scenario, watched);
    Ok((Simulation::new(scenario)?, recording, prober))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../tests/two-flows.toml");
    const THRESHOLD: &str = "queue/bottleneck/ecn_threshold";

    fn run() -> Run {
        Run::new(Script::of_file("test.toml", TEXT)).unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn finish(run: &mut Run, until: Time) {
        while run.now() < until {
            let next = run.now() + Duration::from_millis(7);
            run.advance(next.min(until)).unwrap();
        }
    }

    /// What two runs have seen, as text.
    fn seen(run: &Run) -> String {
        serde_json::to_string(&run.recording().samples).unwrap()
    }

    #[test]
    fn a_changed_run_is_the_run_of_the_saved_file() {
        let mut turned = run();
        finish(&mut turned, at(20));
        let past = turned.recording().samples.time.len();
        turned.set(THRESHOLD, 90_000.0).unwrap();
        finish(&mut turned, at(20));
        assert_eq!(turned.recording().samples.time.len(), past);
        finish(&mut turned, at(31));
        turned.set_link("link/bottleneck", true).unwrap();
        finish(&mut turned, at(40));
        turned.set_link("link/bottleneck", false).unwrap();
        finish(&mut turned, at(60));

        let file = turned.script().file();
        let mut saved = Run::new(Script::of_file("saved.toml", &file)).unwrap();
        finish(&mut saved, at(60));
        assert!(seen(&turned) == seen(&saved));
        let json = |run: &mut Run| serde_json::to_string(&run.summary()).unwrap();
        assert_eq!(json(&mut turned), json(&mut saved));

        let mut unchanged = run();
        finish(&mut unchanged, at(60));
        assert!(seen(&turned) != seen(&unchanged));
    }

    #[test]
    fn the_past_does_not_change() {
        let mut turned = run();
        finish(&mut turned, at(20));
        let before = seen(&turned);
        turned.set(THRESHOLD, 90_000.0).unwrap();
        turned.set_link("link/bottleneck", true).unwrap();
        finish(&mut turned, at(20));
        assert!(seen(&turned) == before);
    }

    #[test]
    fn undo_and_a_way_back_give_the_first_run_again() {
        let mut first = run();
        finish(&mut first, at(60));
        let mut other = run();
        finish(&mut other, at(20));
        other.set(THRESHOLD, 90_000.0).unwrap();
        finish(&mut other, at(30));
        assert_eq!(other.undo().unwrap(), at(20));
        finish(&mut other, at(60));
        assert!(seen(&first) == seen(&other));
        other.seek(at(10)).unwrap();
        finish(&mut other, at(10));
        assert_eq!(other.now(), at(10));
        finish(&mut other, at(60));
        assert!(seen(&first) == seen(&other));
    }

    #[test]
    fn a_flow_that_is_watched_later_shows_its_past() {
        let mut first = run();
        first.watch(&["dctcp/1".to_owned()]).unwrap();
        finish(&mut first, at(40));
        let mut later = run();
        finish(&mut later, at(40));
        later.watch(&["dctcp/1".to_owned()]).unwrap();
        finish(&mut later, at(40));
        assert_eq!(first.prober().probes(), later.prober().probes());
        assert!(seen(&first) == seen(&later));
        assert_eq!(later.watched(), ["dctcp/1"]);
        let too_many = vec!["dctcp/1".to_owned(); 17];
        assert!(matches!(
            later.watch(&too_many),
            Err(StudioError::TooManyFlows(16))
        ));
        assert!(later.watch(&["web/1".to_owned()]).is_err());
        assert_eq!(later.watched(), ["dctcp/1"]);
    }

    #[test]
    fn links_that_are_down_are_known() {
        let mut run = run();
        finish(&mut run, at(5));
        run.set_link("link/bottleneck", true).unwrap();
        assert_eq!(run.failed(), ["link/bottleneck"]);
        finish(&mut run, at(8));
        run.set_link("link/bottleneck", false).unwrap();
        assert!(run.failed().is_empty());
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut run = run();
        finish(&mut run, at(5));
        assert!(matches!(
            run.set("queue/none/buffer", 1.0),
            Err(StudioError::NoKnob(_))
        ));
        assert!(matches!(
            run.set(THRESHOLD, -1.0),
            Err(StudioError::Value { .. })
        ));
        assert!(matches!(
            run.set(THRESHOLD, f64::NAN),
            Err(StudioError::Value { .. })
        ));
        let not_failed = run.set_link("link/bottleneck", false);
        assert!(matches!(not_failed, Err(StudioError::HasNotFailed(_))));
        assert!(matches!(run.undo(), Err(StudioError::NothingToUndo)));
        assert!(run.log().is_empty());
        finish(&mut run, at(60));
        assert!(matches!(
            run.set(THRESHOLD, 40_000.0),
            Err(StudioError::Ended)
        ));
    }

    #[test]
    fn a_knob_that_is_turned_twice_at_one_time_is_logged_once() {
        let mut run = run();
        finish(&mut run, at(5));
        run.set(THRESHOLD, 40_000.0).unwrap();
        finish(&mut run, at(5));
        run.set(THRESHOLD, 50_000.0).unwrap();
        let log: Vec<_> = run.log().iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(log, ["queue bottleneck: ecn_threshold = 50KB"]);
    }
}
