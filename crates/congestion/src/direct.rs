//! A controller that is called directly where its algorithm is a common one.
//!
//! A simulated connection calls its controller for every acknowledgment. A call through a vtable can not
//! be inlined, and the caller has to fill a whole [`AckSample`] in memory.

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::cubic::Cubic;
use crate::dctcp::MarkedFraction;
use crate::newreno::NewReno;
use crate::reno::Reno;
use crate::{AckSample, Controller};

/// A controller of any algorithm. NewReno, CUBIC and DCTCP are called without a vtable; NewReno and DCTCP lie
/// in place.
#[derive(Clone, Debug)]
pub struct DirectController(Kind);

#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "those in place are the usual ones of many thousands of flows"
)]
enum Kind {
    Dctcp(Reno<MarkedFraction>),
    Cubic(Box<Cubic>),
    NewReno(Reno<NewReno>),
    Other(Box<dyn Controller>),
}

impl DirectController {
    /// Returns the controller as one of any algorithm.
    #[inline]
    pub fn as_dyn(&self) -> &dyn Controller {
        match &self.0 {
            Kind::Dctcp(controller) => controller,
            Kind::Cubic(controller) => controller.as_ref(),
            Kind::NewReno(controller) => controller,
            Kind::Other(controller) => controller.as_ref(),
        }
    }

    /// Returns the controller as one of any algorithm.
    #[inline]
    pub fn as_dyn_mut(&mut self) -> &mut dyn Controller {
        match &mut self.0 {
            Kind::Dctcp(controller) => controller,
            Kind::Cubic(controller) => controller.as_mut(),
            Kind::NewReno(controller) => controller,
            Kind::Other(controller) => controller.as_mut(),
        }
    }

    /// Handles an acknowledgment as [`Controller::on_ack`], and returns the window and the pacing rate after
    /// it. An algorithm that is inlined only computes what it reads.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, ack: &PlainAck) -> (ByteSize, Option<Rate>) {
        match &mut self.0 {
            Kind::Dctcp(controller) => {
                controller.acknowledge(&ack.sample());
                (controller.window(), controller.pacing_rate())
            }
            Kind::NewReno(controller) => {
                controller.acknowledge(&ack.sample());
                (controller.window(), controller.pacing_rate())
            }
            Kind::Cubic(controller) => {
                controller.on_ack(&ack.sample());
                (controller.window(), None)
            }
            Kind::Other(controller) => {
                controller.on_ack(&ack.sample());
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

/// An acknowledgment of packets that were sent once, outside of a recovery: an [`AckSample`] without a
/// delivery rate.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "they are the fields of `AckSample`")]
pub struct PlainAck {
    pub now: Time,
    pub acked: ByteSize,
    pub ce_marked: ByteSize,
    pub ece: bool,
    pub rtt: Duration,
    pub smoothed_rtt: Duration,
    pub min_rtt: Duration,
    pub prior_in_flight: ByteSize,
    pub in_flight: ByteSize,
    pub newest_sent: Time,
    pub app_limited: bool,
    pub round_ended: bool,
}

impl PlainAck {
    #[inline(always)]
    fn sample(&self) -> AckSample {
        AckSample {
            now: self.now,
            acked: self.acked,
            ce_marked: self.ce_marked,
            ece: self.ece,
            rtt: Some(self.rtt),
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt,
            prior_in_flight: self.prior_in_flight,
            in_flight: self.in_flight,
            newest_sent: self.newest_sent,
            delivery: None,
            app_limited: self.app_limited,
            is_recovering: false,
            round_ended: self.round_ended,
        }
    }
}

impl From<Box<dyn Controller>> for DirectController {
    fn from(controller: Box<dyn Controller>) -> Self {
        let controller = match downcast(controller) {
            Ok(controller) => return Self(Kind::Dctcp(*controller)),
            Err(controller) => controller,
        };
        let controller = match downcast(controller) {
            Ok(controller) => return Self(Kind::Cubic(controller)),
            Err(controller) => controller,
        };
        match downcast(controller) {
            Ok(controller) => Self(Kind::NewReno(*controller)),
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
                let state = direct.on_plain_ack(&PlainAck {
                    now: sample.now,
                    acked: sample.acked,
                    ce_marked: sample.ce_marked,
                    ece: sample.ece,
                    rtt: sample.smoothed_rtt,
                    smoothed_rtt: sample.smoothed_rtt,
                    min_rtt: sample.min_rtt,
                    prior_in_flight: sample.prior_in_flight,
                    in_flight: sample.in_flight,
                    newest_sent: sample.newest_sent,
                    app_limited: sample.app_limited,
                    round_ended: sample.round_ended,
                });
                assert_eq!(state, (plain.window(), plain.pacing_rate()));
                assert_eq!(direct.as_dyn().snapshot(), plain.snapshot());
            }
        }
    }
}
