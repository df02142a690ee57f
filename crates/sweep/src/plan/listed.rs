//! Sweeps without a file: listed combinations, as an optimizer requests them.

use std::path::Path;

use weir_scenario::{Document, Quantity, Setting};

use super::axis::Values;
use super::file::{Keys, named};
use super::{Points, Sweep};
use crate::SweepError;
use crate::code::Code;

impl Sweep {
    /// Creates a sweep of the scenario under each of these combinations of settings, with each of the
    /// seeds. All set the same keys. `name` is the scenario's name in errors.
    ///
    /// # Errors
    /// There are no combinations, or no seeds; a combination sets other keys than the first one; the
    /// scenario does not have a key.
    pub fn of_points(
        name: &Path,
        base: Document,
        points: &[Vec<Setting>],
        seeds: Vec<u64>,
    ) -> Result<Self, SweepError> {
        let paths = match points.first() {
            Some(first) if !first.is_empty() => first.iter().map(|setting| &setting.path),
            _ => return Err(empty("no settings to try: write at least one combination")),
        };
        let paths: Vec<&String> = paths.collect();
        if seeds.is_empty() {
            return Err(empty("`seeds` is empty: write at least one"));
        }
        let values = |(number, point): (usize, &Vec<Setting>)| {
            let own: Vec<&String> = point.iter().map(|setting| &setting.path).collect();
            if own == paths {
                Ok(point
                    .iter()
                    .map(|setting| Quantity::of_setting(&setting.value))
                    .collect())
            } else {
                Err(SweepError::Points(format!(
                    "combination {number} sets {own:?}; the first one sets {paths:?}: all have to set \
                     the same keys in the same order"
                )))
            }
        };
        let points: Vec<Vec<Quantity>> = (points.iter().enumerate())
            .map(values)
            .collect::<Result<_, _>>()?;
        let column = |index: usize| points.iter().map(|point| point[index].clone()).collect();
        let axes: Keys = (paths.iter().enumerate())
            .map(|(index, path)| ((*path).clone(), Values::List(column(index))))
            .collect();
        let sweep = Self {
            title: "Single settings".to_owned(),
            source: String::new(),
            path: name.to_owned(),
            base,
            axes: named(axes),
            points: Points::List(points),
            seeds,
            conditions: Vec::new(),
            steady: None,
            keeps_flows: false,
            code: Code::own().clone(),
        };
        sweep.check_keys()?;
        Ok(sweep)
    }
}

fn empty(message: &str) -> SweepError {
    SweepError::Points(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        title = "A flow"
        source = "a test"
        duration = "2ms"
        [dumbbell]
        rate = "1Gbps"
        queue = { kind = "drop-tail", buffer = "100KB" }
        [dumbbell.senders.sender]
        rtt = "100us"
        [groups.cubic]
        from = "sender"
        to = "receiver"
        workload = "bulk"
    "#;

    fn sweep(points: &[&[&str]]) -> Result<Sweep, SweepError> {
        let points: Vec<Vec<Setting>> = points
            .iter()
            .map(|point| point.iter().map(|text| text.parse().unwrap()).collect())
            .collect();
        let base = Document::parse("flow.toml", SCENARIO).unwrap();
        Sweep::of_points(Path::new("flow.toml"), base, &points, vec![1, 2])
    }

    #[test]
    fn each_combination_is_run_with_each_seed() {
        let sweep = sweep(&[
            &["dumbbell.rate=1Gbps", "warm_up=1ms"],
            &["dumbbell.rate=12.5Gbps", "warm_up=0s"],
        ])
        .unwrap();
        let columns: Vec<_> = sweep.axes().iter().map(|axis| &axis.column).collect();
        assert_eq!(columns, ["rate_bps", "warm_up_s"]);
        let plan = sweep.plan();
        assert_eq!(plan.len(), 4);
        assert_eq!(
            plan[3].inputs["rate_bps"],
            weir_results::Value::Count(12_500_000_000)
        );
        assert!(plan.iter().all(|run| run.scenario.is_ok()));
    }

    #[test]
    fn invalid_lists_of_combinations_are_errors() {
        for (points, what) in [
            (&[][..], "at least one combination"),
            (&[&[][..]][..], "at least one combination"),
            (
                &[&["dumbbell.rate=1Gbps"][..], &["warm_up=1ms"]][..],
                "combination 1",
            ),
            (&[&["dumbbell.rat=1Gbps"][..]][..], "dumbbell.rat"),
        ] {
            let error = sweep(points).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
