//! A controller that is called directly where its algorithm is a common one.
//!
//! A simulated connection calls its controller for every acknowledgment. A call through a vtable can not
//! be inlined, and the caller has to fill a whole [`AckSample`] in memory.

use weir_units::{ByteSize, Rate};

use crate::cubic::Cubic;
use crate::dctcp::MarkedFraction;
use crate::newreno::NewReno;
use crate::reno::Reno;
use crate::{AckSample, Controller};

/// A controller of any algorithm. NewReno, CUBIC and DCTCP are called without a vtable.
#[derive(Clone, Debug)]
pub struct DirectController(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Dctcp(Box<Reno<MarkedFraction>>),
    Cubic(Box<Cubic>),
    NewReno(Box<Reno<NewReno>>),
    Other(Box<dyn Controller>),
}

impl DirectController {
    /// Returns the controller as one of any algorithm.
    #[inline]
    pub fn as_dyn(&self) -> &dyn Controller {
        match &self.0 {
            Kind::Dctcp(controller) => controller.as_ref(),
            Kind::Cubic(controller) => controller.as_ref(),
            Kind::NewReno(controller) => controller.as_ref(),
            Kind::Other(controller) => controller.as_ref(),
        }
    }

    /// Returns the controller as one of any algorithm.
    #[inline]
    pub fn as_dyn_mut(&mut self) -> &mut dyn Controller {
        match &mut self.0 {
            Kind::Dctcp(controller) => controller.as_mut(),
            Kind::Cubic(controller) => controller.as_mut(),
            Kind::NewReno(controller) => controller.as_mut(),
            Kind::Other(controller) => controller.as_mut(),
        }
    }

    /// Handles an acknowledgment as [`Controller::on_ack`], and returns the window and the pacing rate after
    /// it. Of the sample, only what the algorithm reads is computed, if both are inlined.
    #[inline(always)]
    pub fn on_ack(&mut self, sample: impl Fn() -> AckSample) -> (ByteSize, Option<Rate>) {
        match &mut self.0 {
            Kind::Dctcp(controller) => {
                controller.acknowledge(&sample());
                (controller.window(), controller.pacing_rate())
            }
            Kind::NewReno(controller) => {
                controller.acknowledge(&sample());
                (controller.window(), controller.pacing_rate())
            }
            Kind::Cubic(controller) => {
                controller.on_ack(&sample());
                (controller.window(), None)
            }
            Kind::Other(controller) => {
                controller.on_ack(&sample());
                (controller.window(), controller.pacing_rate())
            }
        }
    }

    /// Whether [`Controller::on_sent`] has an effect.
    #[inline]
    pub fn counts_sent(&self) -> bool {
        matches!(self.0, Kind::Other(_))
    }
}

impl From<Box<dyn Controller>> for DirectController {
    fn from(controller: Box<dyn Controller>) -> Self {
        let controller = match downcast(controller) {
            Ok(controller) => return Self(Kind::Dctcp(controller)),
            Err(controller) => controller,
        };
        let controller = match downcast(controller) {
            Ok(controller) => return Self(Kind::Cubic(controller)),
            Err(controller) => controller,
        };
        match downcast(controller) {
            Ok(controller) => Self(Kind::NewReno(controller)),
            Err(controller) => Self(Kind::Other(controller)),
        }
    }
}

/// Returns the controller as a `C`, if it is one.
fn downcast<C: Controller>(controller: Box<dyn Controller>) -> Result<Box<C>, Box<dyn Controller>> {
    let any: &dyn std::any::Any = controller.as_ref();
    if !any.is::<C>() {
        return Err(controller);
    }
    let any: Box<dyn std::any::Any> = controller;
    any.downcast::<C>()
        .map_err(|_| unreachable!("its type was checked above"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms;
    use crate::samples::{ack, build};

    #[test]
    fn a_direct_call_has_the_effect_of_a_virtual_one() {
        for algorithm in algorithms() {
            let (mut plain, mut direct) = (
                build(algorithm.name),
                DirectController::from(build(algorithm.name)),
            );
            let is_known = ["newreno", "cubic", "dctcp"].contains(&algorithm.name);
            assert_eq!(direct.counts_sent(), !is_known, "{}", algorithm.name);
            assert_eq!(direct.as_dyn().name(), algorithm.name);
            for round in 1..=50 {
                let mut sample = ack(100 * round, 100 * round - 70, 1 + round % 3);
                sample.round_ended = round % 4 == 0;
                if round % 7 == 0 {
                    sample.ce_marked = sample.acked;
                }
                plain.on_ack(&sample);
                let state = direct.on_ack(|| sample);
                assert_eq!(state, (plain.window(), plain.pacing_rate()));
                assert_eq!(direct.as_dyn().snapshot(), plain.snapshot());
            }
        }
    }
}
