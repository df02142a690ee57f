//! Requests and responses: on a persistent connection or on new ones, with failover to another link if
//! the response does not come.

use weir_scenario::{ConnectionUse, Group};
use weir_units::{ByteSize, Duration, Time};

use super::{HostPair, TimerQueue};
use crate::flows::{FlowId, FlowMap};
use crate::world::{PathChoice, Side, World};

/// The request-response flows of a group. Flows are identified by their position here, as a new connection
/// gives a flow another number.
#[derive(Debug)]
pub(super) struct Calls {
    group: u32,
    request: ByteSize,
    response: ByteSize,
    connection: ConnectionUse,
    failover: Option<Duration>,
    calls: Vec<Call>,
    positions: FlowMap<usize>,
    /// The timeouts of requests: the flow's position, and its numbers of requests and of connections when
    /// the timeout was set.
    pub(super) timeouts: TimerQueue<(usize, u64, u64)>,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Call {
    flow: FlowId,
    /// Requests made.
    asked: u64,
    /// Requests made on this connection.
    asked_here: u64,
    asked_at: Time,
    state: CallState,
    /// Connections used for this request.
    attempts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// No request is open.
    Idle,
    /// The request is in transit.
    Asked,
    /// The response is in transit.
    Answering,
    /// The connection has failed, and no other is opened before the next request.
    Broken,
}

/// The result of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The flow's position.
    pub(super) position: usize,
    /// Its duration; `None` if it was given up.
    pub(super) took: Option<Duration>,
    /// The number of connections that it used.
    pub(super) attempts: u64,
}

impl Calls {
    /// Creates the flows of the group with this number.
    pub(super) fn new(
        number: u32,
        group: &Group,
        [request, response]: [ByteSize; 2],
        connection: ConnectionUse,
    ) -> Self {
        Self {
            group: number,
            request,
            response,
            connection,
            failover: group.failover,
            calls: Vec::new(),
            positions: FlowMap::default(),
            timeouts: TimerQueue::new(),
        }
    }

    /// Opens a flow and returns its position.
    pub(super) fn open(&mut self, now: Time, pair: HostPair, world: &mut World) -> usize {
        let position = self.calls.len();
        let flow = world.open(now, self.group, pair, None);
        self.positions.insert(flow, position);
        self.calls.push(Call {
            flow,
            asked: 0,
            asked_here: 0,
            asked_at: now,
            state: CallState::Idle,
            attempts: 0,
        });
        position
    }

    /// Returns the flow at this position.
    pub(super) fn flow(&self, position: usize) -> Option<FlowId> {
        self.calls.get(position).map(|call| call.flow)
    }

    /// Returns how many requests the flow has made.
    pub(super) fn requests_made(&self, position: usize) -> u64 {
        self.calls.get(position).map_or(0, |call| call.asked)
    }

    /// Makes the next request of a flow.
    pub(super) fn send_request(&mut self, now: Time, position: usize, world: &mut World) {
        let Some(call) = self.calls.get_mut(position) else {
            return;
        };
        (call.asked, call.asked_at, call.attempts) = (call.asked + 1, now, 0);
        let is_used = call.asked_here > 0 && self.connection == ConnectionUse::Fresh;
        if is_used || call.state == CallState::Broken {
            self.reconnect(now, position, PathChoice::Same, world);
        }
        self.submit(now, position, world);
    }

    fn reconnect(&mut self, now: Time, position: usize, link: PathChoice, world: &mut World) {
        let Some(call) = self.calls.get_mut(position) else {
            return;
        };
        if let Some(flow) = world.reconnect(now, call.flow, link) {
            self.positions.remove(call.flow);
            self.positions.insert(flow, position);
            (call.flow, call.asked_here) = (flow, 0);
        }
    }

    /// Sends the request on the current connection.
    fn submit(&mut self, now: Time, position: usize, world: &mut World) {
        let Some(call) = self.calls.get_mut(position) else {
            return;
        };
        call.state = CallState::Asked;
        call.asked_here += 1;
        call.attempts += 1;
        let expected = self.request.bytes().saturating_mul(call.asked_here);
        if let Some(limit) = self.failover {
            let which = (position, call.asked, call.attempts);
            self.timeouts.note(now + limit, which);
        }
        let flow = call.flow;
        world.wait_for(flow, Side::Responder, expected);
        world.write(now, flow, Side::Initiator, self.request);
    }

    /// Repeats requests that were not answered in time.
    pub(super) fn handle_timeout(&mut self, now: Time, world: &mut World) {
        while let Some((position, asked, attempts)) = self.timeouts.due(now) {
            let waits = self.calls.get(position).is_some_and(|call| {
                let is_open = matches!(call.state, CallState::Asked | CallState::Answering);
                is_open && (call.asked, call.attempts) == (asked, attempts)
            });
            if waits {
                self.retry_request(now, position, world);
            }
        }
    }

    fn retry_request(&mut self, now: Time, position: usize, world: &mut World) {
        self.reconnect(now, position, PathChoice::Next, world);
        self.submit(now, position, world);
    }

    /// Handles the delivery of awaited data; returns the result if it is the whole response.
    pub(super) fn on_delivered(
        &mut self,
        now: Time,
        flow: FlowId,
        world: &mut World,
    ) -> Option<Outcome> {
        let position = *self.positions.get(flow)?;
        let call = self.calls.get_mut(position)?;
        match call.state {
            CallState::Asked => {
                call.state = CallState::Answering;
                let expected = self.response.bytes().saturating_mul(call.asked_here);
                world.wait_for(flow, Side::Initiator, expected);
                world.write(now, flow, Side::Responder, self.response);
                None
            }
            CallState::Answering => {
                call.state = CallState::Idle;
                let took = now.since(call.asked_at);
                world.count_completion(flow, took);
                Some(Outcome {
                    position,
                    took: Some(took),
                    attempts: call.attempts,
                })
            }
            CallState::Idle | CallState::Broken => None,
        }
    }

    /// Handles a failed connection; returns the result if the request will not be repeated.
    pub(super) fn on_failed(
        &mut self,
        now: Time,
        flow: FlowId,
        world: &mut World,
    ) -> Option<Outcome> {
        let position = *self.positions.get(flow)?;
        let call = self.calls.get_mut(position)?;
        let waits = matches!(call.state, CallState::Asked | CallState::Answering);
        if waits && self.failover.is_some() {
            self.retry_request(now, position, world);
            return None;
        }
        call.state = CallState::Broken;
        waits.then_some(Outcome {
            position,
            took: None,
            attempts: call.attempts,
        })
    }

    /// Closes the connection of an answered request at both ends, if it is not used again.
    pub(super) fn hang_up_if_fresh(&mut self, now: Time, position: usize, world: &mut World) {
        if self.connection == ConnectionUse::Fresh
            && let Some(flow) = self.flow(position)
        {
            world.close_connection(now, flow);
        }
    }
}
