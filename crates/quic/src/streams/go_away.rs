//! Streams that a side which goes away does not serve: the peer's after our GOAWAY, and ours after the
//! peer's.

use super::map::StreamMap;
use super::{StreamEvent, Streams};
use crate::StreamId;

impl Streams {
    /// Refuses bidirectional streams that the peer has not opened yet, with an application error code;
    /// returns the number of those that are served.
    pub(crate) fn refuse_new(&mut self, code: u64) -> u64 {
        self.map.refusal_code = code;
        self.map.numbers.refuse_new(false)
    }

    /// Refuses also those that the application has not accepted: none of them is served any more.
    pub(crate) fn refuse_unaccepted(&mut self) -> u64 {
        self.map.numbers.refuse_new(true)
    }

    /// Notes that an open stream lasts as long as the connection.
    pub(crate) fn set_lasting(&mut self, id: StreamId) {
        if self.map.streams.contains(id) && !self.map.lasting.contains(&id) {
            self.map.lasting.push(id);
        }
    }

    /// Whether everything is done: no stream is open, except for refused and lasting ones, and the
    /// application has accepted all others.
    pub(crate) fn are_done(&self) -> bool {
        let StreamMap {
            numbers, lasting, ..
        } = &self.map;
        let mut open = self.map.streams.ids();
        numbers.are_all_accepted() && open.all(|id| numbers.refuses(id) || lasting.contains(&id))
    }

    /// Whether the peer refuses a stream of ours.
    pub(crate) fn is_refused(&self, id: StreamId) -> bool {
        self.map.numbers.is_refused(id)
    }

    /// Abandons our bidirectional streams from the number `served` on, which the peer refuses, with an
    /// application error code. None is opened any more.
    pub(crate) fn abandon_refused(&mut self, served: u64, code: u64) {
        self.map.numbers.limit_served(served);
        for id in self.map.ids() {
            let Some(stream) = self.map.streams.get_mut(id) else {
                continue;
            };
            if !self.map.numbers.is_refused(id) {
                continue;
            }
            if let Some(send) = &mut stream.send {
                if send.blocked {
                    self.events.push(StreamEvent::Writable(id));
                }
                // It may have been reset before.
                let _ = send.reset(code, &mut self.pool);
            }
            if let Some(receive) = &mut stream.receive {
                if receive.blocked {
                    self.events.push(StreamEvent::Readable(id));
                }
                // It may have ended, or been stopped, before.
                let _ = receive.stop(code, &mut self.window, &mut self.pool);
            }
            self.settle(id);
        }
    }
}
