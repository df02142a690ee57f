//! The receiver's ECN echo: RFC 3168 section 6.1.3, RFC 8257 section 3.2.

use crate::EcnMode;

/// The ECN echo of acknowledgments.
#[derive(Clone, Debug)]
pub(crate) struct EcnEcho {
    mode: EcnMode,
    /// Whether the first mark and CWR are acknowledged at once, as in Linux: the sender's window may be
    /// small.
    is_quick: bool,
    /// Whether acknowledgments carry ECE: from a mark until CWR (RFC 3168), or because the last
    /// data segment was marked (DCTCP.CE of RFC 8257).
    ece: bool,
    /// Whether an acknowledgment of the data before the mark changed is due.
    has_prior: bool,
    /// Whether that carries ECE.
    prior_ece: bool,
    /// What it acknowledges.
    prior_next: u64,
}

/// An acknowledgment of data whose marks differ from the following data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PriorAck {
    /// The next expected byte at that time.
    pub(crate) next: u64,
    pub(crate) ece: bool,
}

impl EcnEcho {
    pub(super) fn new(mode: EcnMode, is_quick: bool) -> Self {
        Self {
            mode,
            is_quick,
            ece: false,
            has_prior: false,
            prior_ece: false,
            prior_next: 0,
        }
    }

    /// Processes a data segment that arrives while `next` is expected. `waiting`: earlier data
    /// waits for its delayed ACK. Returns whether to acknowledge at once.
    ///
    /// DCTCP: if the mark changes, the waiting data is acknowledged first with its own echo. The
    /// echo of every acknowledgment thus applies to all the bytes that it acknowledges.
    #[inline(always)]
    pub(super) fn on_data(&mut self, marked: bool, cwr: bool, next: u64, waiting: bool) -> bool {
        match self.mode {
            EcnMode::Off => false,
            EcnMode::Classic => {
                let is_first = marked && !self.ece;
                self.ece = marked || (self.ece && !cwr);
                self.is_quick && (is_first || cwr)
            }
            EcnMode::Dctcp => {
                if marked == self.ece {
                    // The rest of the window waits for a second segment, or for the next round trip:
                    // kernel TCP with a window of two segments sends 1.5 per round trip.
                    return self.is_quick && cwr;
                }
                if waiting {
                    self.has_prior = true;
                    (self.prior_next, self.prior_ece) = (next, self.ece);
                }
                self.ece = marked;
                true
            }
        }
    }

    #[inline]
    pub(crate) fn echoes(&self) -> bool {
        self.ece
    }

    /// Returns the acknowledgment to send before the next one.
    #[inline]
    pub(crate) fn take_prior(&mut self) -> Option<PriorAck> {
        std::mem::take(&mut self.has_prior).then_some(PriorAck {
            next: self.prior_next,
            ece: self.prior_ece,
        })
    }

    #[inline]
    pub(crate) fn has_prior(&self) -> bool {
        self.has_prior
    }
}
