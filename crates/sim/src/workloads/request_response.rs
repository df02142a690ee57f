//! Flows on which one side asks and the other answers, over and over.

use weir_units::{ByteSize, Duration, Time};

use super::{Agenda, Application, Pair};
use crate::flows::{FlowId, FlowMap};
use crate::world::{Side, World};

/// What each flow does.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) request: ByteSize,
    pub(super) response: ByteSize,
    pub(super) pause: Duration,
    /// How often.
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) struct Requests {
    group: u32,
    starts: Agenda<Pair>,
    /// Flows that pause before they ask again.
    pauses: Agenda<FlowId>,
    exchange: Exchange,
    open: FlowMap<Progress>,
}

/// How far a flow is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Requests sent.
    asked: u64,
    /// Responses begun.
    answered: u64,
    asked_at: Time,
}

impl Requests {
    pub(super) fn new(group: u32, starts: Agenda<Pair>, exchange: Exchange) -> Self {
        Self {
            group,
            starts,
            pauses: Agenda::new(),
            exchange,
            open: FlowMap::default(),
        }
    }

    fn ask(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(progress) = self.open.get_mut(flow) else {
            return;
        };
        progress.asked += 1;
        progress.asked_at = now;
        let expected = self.exchange.request.bytes() * progress.asked;
        world.wait_for(flow, Side::Responder, expected);
        world.write(now, flow, Side::Initiator, self.exchange.request);
    }

    fn answer(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(progress) = self.open.get_mut(flow) else {
            return;
        };
        progress.answered += 1;
        let expected = self.exchange.response.bytes() * progress.answered;
        world.wait_for(flow, Side::Initiator, expected);
        world.write(now, flow, Side::Responder, self.exchange.response);
    }

    fn on_response(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(progress) = self.open.get_mut(flow) else {
            return;
        };
        world.count_completion(flow, now.since(progress.asked_at));
        if progress.asked < self.exchange.count {
            self.pauses.note(now + self.exchange.pause, flow);
        } else {
            self.open.remove(flow);
            world.dismiss(now, flow);
        }
    }
}

impl Application for Requests {
    fn next_time(&self) -> Option<Time> {
        let times = [self.starts.next_time(), self.pauses.next_time()];
        times.into_iter().flatten().min()
    }

    fn on_time(&mut self, now: Time, world: &mut World) {
        while let Some(pair) = self.starts.due(now) {
            let flow = world.open(now, self.group, pair, None);
            let progress = Progress {
                asked: 0,
                answered: 0,
                asked_at: now,
            };
            self.open.insert(flow, progress);
            self.ask(now, flow, world);
        }
        while let Some(flow) = self.pauses.due(now) {
            self.ask(now, flow, world);
        }
    }

    fn on_delivered(&mut self, now: Time, flow: FlowId, world: &mut World) {
        let Some(progress) = self.open.get_mut(flow) else {
            return;
        };
        match progress.answered < progress.asked {
            true => self.answer(now, flow, world),
            false => self.on_response(now, flow, world),
        }
    }
}
