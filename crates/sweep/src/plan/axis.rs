//! Axes: the values of a sweep's keys.

use weir_scenario::Quantity;

/// The largest number of steps of one range.
const MOST_STEPS: f64 = 1e6;

/// The values of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The path to the key in the scenario: `parameters.ecn_threshold`.
    pub path: String,
    /// The name of the key's column in the dataset: the last part of its path, or all of it if two keys
    /// share the last part, with the unit: `ecn_threshold_bytes`.
    pub column: String,
    pub(crate) values: Values,
}

/// The possible values of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    /// One of these.
    List(Vec<Quantity>),
    /// Any amount in this range.
    Between {
        from: Quantity,
        to: Quantity,
        /// Amounts are rounded to multiples of this.
        round: Option<f64>,
        /// Whether the logarithm is uniform instead of the amount.
        logarithmic: bool,
    },
}

impl Values {
    /// Returns the value at a position from 0, included, to 1, excluded.
    pub(crate) fn at(&self, place: f64) -> Quantity {
        match self {
            Self::List(values) => {
                let index = (place * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Self::Between {
                from,
                to,
                round,
                logarithmic,
            } => {
                let (low, high) = (amount(from), amount(to));
                let amount = if *logarithmic {
                    low * (high / low).powf(place)
                } else {
                    low + (high - low) * place
                };
                let amount = match round {
                    Some(step) => ((amount / step).round() * step).clamp(low, high),
                    None => amount,
                };
                from.with_amount(amount)
            }
        }
    }

    /// Returns one value, as an example of their kind.
    pub(crate) fn example(&self) -> &Quantity {
        match self {
            Self::List(values) => &values[0],
            Self::Between { from, .. } => from,
        }
    }
}

fn amount(quantity: &Quantity) -> f64 {
    quantity.amount().unwrap_or_default()
}

/// Returns the amounts from one to another, both included, if the steps lead there.
pub(crate) fn steps(
    from: &Quantity,
    to: &Quantity,
    step: &Quantity,
) -> Result<Vec<Quantity>, String> {
    if !from.is_like(to) || !from.is_like(step) {
        return Err(format!(
            "a range needs amounts of one kind: from `{from}` to `{to}` in steps of `{step}`"
        ));
    }
    let (low, high, width) = (amount(from), amount(to), amount(step));
    if width <= 0.0 || high < low {
        return Err(format!(
            "no step of `{step}` leads from `{from}` to `{to}`: write them in rising order, with a step \
             above zero"
        ));
    }
    let count = ((high - low) / width + 1e-9).floor();
    if count > MOST_STEPS {
        return Err(format!(
            "{count} steps of `{step}` are more than the {MOST_STEPS} that one key may have"
        ));
    }
    // Integers with a fractional step would be rounded.
    let kind = match (from, step) {
        (Quantity::Integer(_), Quantity::Number(_)) => Quantity::Number(low),
        _ => from.clone(),
    };
    let steps = 0..=count as u64;
    Ok(steps
        .map(|number| kind.with_amount(low + width * number as f64))
        .collect())
}

/// Checks a range for samples.
pub(crate) fn between(
    from: Quantity,
    to: Quantity,
    round: Option<Quantity>,
    logarithmic: bool,
) -> Result<Values, String> {
    let like = from.is_like(&to) && round.as_ref().is_none_or(|round| from.is_like(round));
    if !like {
        return Err(format!(
            "`from`, `to` and `round` have to be amounts of one kind: `{from}`, `{to}`"
        ));
    }
    if amount(&from) >= amount(&to) {
        return Err(format!("`from` has to be below `to`: `{from}`, `{to}`"));
    }
    if logarithmic && amount(&from) <= 0.0 {
        return Err(format!(
            "a logarithmic span begins above zero, and not at `{from}`"
        ));
    }
    let round = round.as_ref().map(amount);
    if round.is_some_and(|round| round <= 0.0) {
        return Err("`round` has to be above zero".to_owned());
    }
    Ok(Values::Between {
        from,
        to,
        round,
        logarithmic,
    })
}

#[cfg(test)]
mod tests {
    use weir_units::ByteSize;

    use super::*;

    fn kb(count: u64) -> Quantity {
        Quantity::Size(ByteSize::from_bytes(1000 * count))
    }

    #[test]
    fn a_range_includes_both_ends() {
        let steps_of = |to, step| steps(&kb(0), &kb(to), &kb(step)).unwrap();
        assert_eq!(steps_of(40, 20), [kb(0), kb(20), kb(40)]);
        assert_eq!(steps_of(50, 20), [kb(0), kb(20), kb(40)]);
        assert_eq!(steps_of(0, 20), [kb(0)]);
        let tenths = steps(
            &Quantity::Integer(0),
            &Quantity::Integer(1),
            &Quantity::Number(0.1),
        );
        assert_eq!(tenths.unwrap().len(), 11);
        assert!(steps(&kb(1), &kb(0), &kb(1)).is_err());
        assert!(steps(&kb(0), &kb(1), &kb(0)).is_err());
        assert!(steps(&kb(0), &Quantity::Integer(1), &kb(1)).is_err());
    }

    #[test]
    fn intervals_are_covered_evenly() {
        let span = between(kb(1), kb(100), None, true).unwrap();
        assert_eq!(span.at(0.0), kb(1));
        assert_eq!(span.at(0.5), kb(10));
        let span = between(kb(0), kb(100), Some(kb(20)), false).unwrap();
        assert_eq!(span.at(0.49), kb(40));
        let list = Values::List(vec![kb(1), kb(2), kb(3)]);
        assert_eq!(
            [0.0, 0.4, 0.999].map(|place| list.at(place)),
            [kb(1), kb(2), kb(3)]
        );
        assert!(between(kb(0), kb(1), None, true).is_err());
        assert!(between(kb(1), kb(1), None, false).is_err());
    }
}
