//! The cost of SED's agent in the switch without congestion.

use std::time::Duration as Wait;

use weir_units::Rate;

use crate::Failure;
use crate::bulk::measure as bulk;
use crate::network::Settings;

/// The number of runs with and without it, alternating, so that other load affects both alike.
const ROUNDS: usize = 7;
const SPAN: Wait = Wait::from_secs(3);

/// Runs the same flow with and without the agent.
pub(crate) fn measure() -> Result<(), Failure> {
    println!("\nOne kernel-TCP flow with SED's agent in the switch, no rate limit and no queue");
    let mut rates = [Vec::new(), Vec::new()];
    let mut shares = [0.0; 2];
    for _ in 0..ROUNDS {
        for (side, sed) in [false, true].into_iter().enumerate() {
            let settings = Settings {
                sed,
                ..Settings::default()
            };
            let result = bulk(settings, SPAN)?;
            rates[side].push(result.goodput);
            shares[side] += result.switch_share / ROUNDS as f64;
        }
    }
    let medians = rates.map(|mut rates| {
        rates.sort();
        rates.get(rates.len() / 2).copied().unwrap_or(Rate::ZERO)
    });
    let [without, with] = medians.map(|rate| rate.bits_per_second() as f64 / 1e9);
    for (name, rate, share) in [("without", without, shares[0]), ("with", with, shares[1])] {
        println!(
            "  {name:<36} {rate:>7.3} Gbit/s  switch {:>3.0} % CPU",
            100.0 * share
        );
    }
    println!(
        "  {:+.1} % (medians of {ROUNDS} runs of each, in turns)\nwanted: not below -2 %",
        100.0 * (with / without - 1.0)
    );
    Ok(())
}
