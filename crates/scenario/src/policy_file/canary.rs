//! The keys by which a rule is tried on a part of the connections, and taken back.

use weir_policy::{GuardCondition, Share};
use weir_scenario_derive::Keys;

use crate::document::{Cursor, Reported, Value};
use crate::error::ProblemKind;
use crate::schema::{Accepts, Fields};

/// The keys of a canary.
#[derive(Keys)]
#[keys(check = table.check(fields))]
pub(super) struct CanaryKeys {
    /// The part of the connections that meet the rule's conditions which get its action, by a hash of
    /// addresses, ports and `seed`. The next rules apply to the others.
    #[key(accepts = Accepts::Other(SHARE), absent = "all", read = share(at))]
    pub(super) share: Option<f64>,
    /// Leaves the connections outside `share` alone, and measures them beside those in it, instead of going on
    /// to the next rules.
    #[key(default = false)]
    pub(super) compare: bool,
    /// Takes the rule back when one of these holds of the connections that get its action.
    #[key(accepts = Accepts::Other(UNDO_IF), absent = "never", or = Vec::new(), read = conditions(at))]
    pub(super) undo_if: Vec<GuardCondition>,
}

const SHARE: &str = "a number above 0 and at most 1";
const UNDO_IF: &str = "a condition such as \"retransmits > 2x for 30s\", or a list of these";

fn share(at: &Cursor<'_>) -> Result<f64, Reported> {
    let number = match at.node.value {
        Value::Integer(number) => number as f64,
        Value::Float(number) => number,
        _ => return Err(at.wrong_kind(SHARE)),
    };
    if Share::new(number, 0).is_some() {
        return Ok(number);
    }
    Err(at.problem(ProblemKind::OutOfRange {
        expected: SHARE.to_owned(),
        found: number.to_string(),
    }))
}

fn conditions(at: &Cursor<'_>) -> Result<Vec<GuardCondition>, Reported> {
    let items = at.items();
    if items.is_empty() {
        return Err(at.conflict(
            "an empty list never holds",
            format!("write {UNDO_IF}, or leave `undo_if` out"),
        ));
    }
    // Report every wrong condition, not only the first.
    let read: Vec<_> = items.iter().map(condition).collect();
    read.into_iter().collect()
}

fn condition(at: &Cursor<'_>) -> Result<GuardCondition, Reported> {
    let parsed = at.text(UNDO_IF)?.parse::<GuardCondition>();
    parsed.map_err(|error| {
        let message = error.to_string();
        at.problem(ProblemKind::Condition { message })
    })
}

impl CanaryKeys {
    /// Checks the keys against each other and against `pass`.
    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        let passes = fields
            .at("pass")
            .is_some_and(|pass| matches!(pass.node.value, Value::Boolean(true)));
        let used = [
            ("compare", self.compare),
            ("undo_if", !self.undo_if.is_empty()),
        ];
        let used = used.into_iter().find(|(_, is_used)| *is_used);
        if let Some((key, _)) = used.filter(|_| passes) {
            return Err(fields.error_position(key).conflict(
                "a rule that leaves connections alone has nothing to compare and nothing to undo",
                format!("remove `{key}`, or write `congestion` instead of `pass`"),
            ));
        }
        if self.compare && self.share.is_none_or(|share| share == 1.0) {
            return Err(fields.error_position("compare").conflict(
                "no connections are left to compare with",
                "write a `share` below 1, such as `share = 0.1`",
            ));
        }
        let relative = self.undo_if.iter().find(|it| it.needs_control_group());
        match relative.filter(|_| !self.compare) {
            None => Ok(()),
            Some(condition) => Err(fields.error_position("undo_if").conflict(
                format!("`{condition}` compares with a control group, and there is none"),
                "write `compare = true` and a `share`, or an absolute value such as \"retransmits > 1% for 30s\"",
            )),
        }
    }
}
