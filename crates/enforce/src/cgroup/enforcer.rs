//! Puts a policy in force at the sockets of a control group, and undoes that.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weir_canary::{Canaries, GroupStatistics, RuleId, Snapshot};
use weir_metrics::Registry;
use weir_policy::{Policy, PolicyRule};
use weir_units::Time;

use super::CgroupError;
use super::algorithm::KernelCongestion;
use super::counts::{OPTIONS, Population};
use super::group::ControlGroup;
use super::guardian::{Guardian, GuardianCommand};
use super::pins::Pins;
use super::programs::{self, Programs};
use super::registered::RegisteredAlgorithms;
use super::rules::{self, MOST_RULES, SocketRule};
use super::slots::{Slot, Slots};
use crate::operation::{
    CanaryStatus, Enforce, ResumeError, RuleStatus, SocketMetrics, SocketStatus, Status,
};

/// The longest time of which a snapshot can be: that of which a guard can be.
const LONGEST_SPAN: Duration = Duration::from_secs(600);
/// The time between two looks at what may have changed.
const STEP: Duration = Duration::from_millis(100);
/// The time between two updates of the metrics, for which all sockets are counted.
const SURVEY: Duration = Duration::from_secs(1);

/// The options of an [`Enforcer`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Decides and counts only; no socket is changed.
    pub is_dry_run: bool,
    /// Measures all connections, also those that no rule is for: [`Enforce::snapshot`] has what they did.
    pub measures_all: bool,
    /// The command of a process that undoes all if this one is killed; without it the next start does.
    pub guardian: Option<GuardianCommand>,
}

/// Gives the sockets of a control group what a policy says. Dropping it undoes that.
#[derive(Debug)]
pub struct Enforcer {
    guardian: Option<Guardian>,
    programs: Programs,
    pins: Option<Pins>,
    group: ControlGroup,
    options: Options,
    policy: Policy,
    /// The control groups that the rules name, as they were found.
    groups: Vec<Vec<Option<u64>>>,
    slots: Slots,
    canaries: Canaries,
    /// The numbers of the rules in force, by their slots.
    measured: BTreeMap<u32, RuleId>,
    /// What all connections did since the policy came into force, if they are measured.
    all: GroupStatistics,
    metrics: Option<SocketMetrics>,
    surveyed: Instant,
    is_gone: bool,
    gone: Vec<String>,
    warnings: Vec<String>,
    /// Dropped last: sockets that use one are put back before.
    algorithms: RegisteredAlgorithms,
}

impl Enforcer {
    /// Puts a policy in force at a control group, whose path is absolute or below the root of the cgroup2
    /// hierarchy: at the connections that are open, and those that open from now on. What a killed process
    /// has left there is undone first.
    ///
    /// # Errors
    /// See [`CgroupError`].
    pub fn attach(path: &Path, policy: Policy, options: Options) -> Result<Self, CgroupError> {
        let group = ControlGroup::open(path)?;
        programs::check_permission()?;
        group.claim()?;
        let pins = Pins::create(group.id())?;
        let loaded = Programs::load(&group, options.is_dry_run);
        let pinned = loaded.and_then(|programs| {
            programs.pin_undo(&pins.undo_file())?;
            Ok(programs)
        });
        let programs = match pinned {
            Ok(programs) => programs,
            Err(error) => {
                pins.remove();
                return Err(error);
            }
        };
        let mut enforcer = Self {
            guardian: None,
            programs,
            pins: Some(pins),
            group,
            options,
            policy: Policy::default(),
            groups: Vec::new(),
            slots: Slots::default(),
            canaries: Canaries::default(),
            measured: BTreeMap::new(),
            all: GroupStatistics::new(LONGEST_SPAN.into()),
            metrics: None,
            surveyed: Instant::now(),
            is_gone: false,
            gone: Vec::new(),
            warnings: Vec::new(),
            algorithms: RegisteredAlgorithms::default(),
        };
        enforcer.start_guardian();
        enforcer.put_in_force(policy)?;
        Ok(enforcer)
    }

    fn start_guardian(&mut self) {
        let (Some(command), Some(pins)) = (self.options.guardian, &self.pins) else {
            return;
        };
        match Guardian::start(command, pins.directory()) {
            Ok(guardian) => self.guardian = Some(guardian),
            Err(error) => self.warnings.push(format!(
                "no guardian process could be started: if this process is killed, sockets keep what they \
                 have until the next start or `weir enforce clean`: {error}"
            )),
        }
    }

    /// Looks whether the guardian lives.
    fn keep_guardian(&mut self) {
        if self
            .guardian
            .as_mut()
            .is_some_and(|guardian| !guardian.is_alive())
        {
            self.guardian = None;
            self.warnings
                .push("the guardian process has ended: another one is started".to_owned());
            self.start_guardian();
        }
    }

    /// Puts another policy in force; the one before stays if that is not possible.
    fn put_in_force(&mut self, policy: Policy) -> Result<(), CgroupError> {
        let policy = if self.options.measures_all {
            with_rest(policy)
        } else {
            policy
        };
        if policy.rules.len() > MOST_RULES {
            return Err(CgroupError::TooManyRules {
                found: policy.rules.len(),
                most: MOST_RULES,
            });
        }
        let congestions = policy.rules.iter().map(|rule| self.congestion(rule));
        let congestions: Vec<_> = congestions.collect::<Result<_, _>>()?;
        let populations = self.programs.populations(self.slots.count())?;
        let sockets = |slot| {
            populations
                .get(slot)
                .map_or(0, |slot: &Population| slot.sockets())
        };
        let programs = &self.programs;
        let slots = self
            .slots
            .assign(&policy, sockets, |slot| programs.clear(slot))?;
        for (slot, congestion) in slots.iter().zip(&congestions) {
            let name = congestion.as_ref().map(|(name, _)| name.clone());
            self.slots.set_algorithm(*slot, name);
        }
        let ids = self.canaries.set_policy(&policy);
        self.measured = slots.iter().copied().zip(ids.iter().copied()).collect();
        let groups = self.find_groups(&policy);
        let parts = policy
            .rules
            .iter()
            .zip(slots)
            .zip(congestions)
            .zip(&groups)
            .zip(ids);
        let rules: Vec<_> = parts
            .map(|((((rule, slot), congestion), groups), id)| SocketRule {
                rule,
                slot,
                congestion,
                groups: groups.clone(),
                is_measured: self.options.measures_all || rule.needs_records(),
                is_off: self.canaries.is_undone(id),
            })
            .collect();
        self.programs.set_rules(&rules::write(&rules))?;
        let names_owners = |rule: &PolicyRule| !rule.users.is_empty() || !rule.commands.is_empty();
        let has_owners = policy.rules.iter().any(names_owners);
        self.groups = groups;
        self.policy = policy;
        self.programs.attach(&self.group, has_owners)?;
        self.programs.reconcile()
    }

    /// Returns what a rule's algorithm is in the kernel, with its name there.
    fn congestion(
        &mut self,
        rule: &PolicyRule,
    ) -> Result<Option<(String, KernelCongestion)>, CgroupError> {
        let Some(control) = &rule.control else {
            return Ok(None);
        };
        let refused = |problem, remedy: &str| CgroupError::Rule {
            line: rule.line,
            key: "congestion",
            problem,
            remedy: remedy.to_owned(),
        };
        let congestion = KernelCongestion::of(&control.congestion)
            .map_err(|error| refused(error.problem, error.remedy))?;
        let name = self.algorithms.name(congestion.algorithm)?;
        Ok(Some((name, congestion)))
    }

    fn find_groups(&self, policy: &Policy) -> Vec<Vec<Option<u64>>> {
        let of = |rule: &PolicyRule| {
            let paths = rule.cgroups.iter();
            paths.map(|path| self.group.find(path.as_str())).collect()
        };
        policy.rules.iter().map(of).collect()
    }

    /// Follows control groups that were removed or made anew.
    fn follow_groups(&mut self) -> Result<(), CgroupError> {
        if self.find_groups(&self.policy) == self.groups {
            return Ok(());
        }
        self.put_in_force(self.policy.clone())
    }

    fn rule_status(&self, number: u32, slot: &Slot, population: Population) -> RuleStatus {
        let counts = self.programs.counts(number);
        let refused = OPTIONS.into_iter().zip(counts.refused);
        let refused = refused.filter(|(_, count)| *count > 0);
        RuleStatus {
            line: slot.rule.line,
            algorithm: slot.algorithm.clone().unwrap_or_else(|| "pass".to_owned()),
            is_current: slot.is_current,
            flows: population.treated,
            control_flows: population.control,
            flows_without_ecn: population.without_ecn,
            overridden_flows: population.overridden,
            matched: counts.matched,
            applied: counts.applied,
            without_ecn: counts.without_ecn,
            overridden: counts.overridden,
            undone: counts.undone,
            not_undone: counts.not_undone,
            refused: refused
                .map(|(key, count)| (key.to_owned(), count))
                .collect(),
        }
    }

    fn socket_status(&self) -> SocketStatus {
        let populations = self.programs.populations(self.slots.count());
        let populations = populations.unwrap_or_default();
        let population = |number: u32| populations.get(number as usize).copied();
        let mut rules: Vec<_> = { self.slots.used() }
            .map(|(number, slot)| {
                self.rule_status(number, slot, population(number).unwrap_or_default())
            })
            .filter(|rule| rule.is_current || rule.flows + rule.control_flows > 0)
            .filter(|rule| !(self.options.measures_all && rule.line == REST))
            .collect();
        rules.sort_by_key(|rule| (!rule.is_current, rule.line));
        SocketStatus {
            cgroup: self.group.directory().display().to_string(),
            is_dry_run: self.options.is_dry_run,
            rules,
            canaries: self.canary_status(),
        }
    }

    fn canary_status(&self) -> Vec<CanaryStatus> {
        let now = monotonic();
        let reports = self.canaries.reports(now).into_iter();
        reports
            .map(|report| CanaryStatus::of(report, now))
            .collect()
    }

    /// Counts the sockets once per second, which also makes records of those that are measured.
    fn survey(&mut self) -> Result<(), CgroupError> {
        if self.surveyed.elapsed() >= SURVEY {
            self.surveyed = Instant::now();
            let status = self.socket_status();
            if let Some(metrics) = &self.metrics {
                metrics.set(&status);
            }
        }
        self.take_records()
    }

    /// Evaluates what measured connections have done, and takes rules back whose guards say so.
    fn take_records(&mut self) -> Result<(), CgroupError> {
        let records = self.programs.take_records()?;
        if self.canaries.is_empty() && !self.options.measures_all {
            return Ok(());
        }
        let now = monotonic();
        for record in records {
            if let Some(rule) = self.measured.get(&record.slot) {
                let record = record.of(*rule);
                self.canaries.record(now, &record);
                if self.options.measures_all {
                    self.all.record(now, &record);
                }
            }
        }
        self.all.forget_old(now);
        let undone = self.canaries.evaluate(now);
        if undone.is_empty() {
            return Ok(());
        }
        for undo in undone {
            self.warnings.push(format!(
                "the rule on line {} is taken back, and its connections have what they had: {}",
                undo.line, undo.evidence
            ));
        }
        self.put_in_force(self.policy.clone())
    }
}

/// The line of the rule for all other connections, which only measures them.
const REST: u32 = 0;

/// Adds a rule for all other connections, if there is room.
fn with_rest(mut policy: Policy) -> Policy {
    let has_rest = policy.rules.last().is_some_and(|rule| rule.line == REST);
    if !has_rest && policy.rules.len() < MOST_RULES {
        policy.rules.push(PolicyRule::new(None));
    }
    policy
}

/// Returns the time of a clock that does not go back.
fn monotonic() -> Time {
    let now = std::time::Duration::try_from(clock_gettime(ClockId::Monotonic));
    Time::ZERO + weir_units::Duration::from(now.unwrap_or_default())
}

/// Enforcement at the sockets of a control group.
impl Enforce for Enforcer {
    type Error = CgroupError;

    fn set_registry(&mut self, registry: &Registry) {
        self.metrics = Some(SocketMetrics::register(registry));
    }

    fn set_policy(&mut self, policy: Policy) -> Result<(), CgroupError> {
        let before = self.policy.clone();
        let Err(error) = self.put_in_force(policy) else {
            self.all = GroupStatistics::new(LONGEST_SPAN.into());
            return Ok(());
        };
        // What was changed before the error is taken back.
        self.put_in_force(before)?;
        Err(error)
    }

    fn resume(&mut self, line: u32) -> Result<(), ResumeError> {
        self.canaries.resume(line)?;
        let failed = |error: CgroupError| ResumeError::Failed(error.to_string());
        self.put_in_force(self.policy.clone()).map_err(failed)
    }

    fn step(&mut self) -> Result<(), CgroupError> {
        sleep(STEP);
        if !self.group.exists() {
            self.is_gone = true;
            self.gone.push(self.group.directory().display().to_string());
            return Ok(());
        }
        self.keep_guardian();
        self.follow_groups()?;
        self.survey()
    }

    fn snapshot(&self, span: weir_units::Duration) -> Option<Snapshot> {
        let snapshot = || self.all.snapshot_of_last(monotonic(), span);
        self.options.measures_all.then(snapshot)
    }

    fn take_gone(&mut self) -> Vec<String> {
        std::mem::take(&mut self.gone)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn is_over(&self) -> bool {
        self.is_gone
    }

    fn status(&self) -> Status {
        Status {
            sockets: Some(self.socket_status()),
            ..Status::default()
        }
    }
}

impl Drop for Enforcer {
    fn drop(&mut self) {
        // First, or more sockets would be changed.
        self.programs.detach();
        if let Some(pins) = self.pins.take() {
            pins.undo();
            pins.remove();
        }
    }
}
