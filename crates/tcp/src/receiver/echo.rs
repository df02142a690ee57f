//! The receiver's side of ECN: RFC 3168 section 6.1.3, RFC 8257 section 3.2.

use crate::EcnMode;

/// What acknowledgments echo.
#[derive(Clone, Debug)]
pub(crate) struct EcnEcho {
    mode: EcnMode,
    /// Whether acknowledgments carry ECE: since a mark and until CWR (RFC 3168), or because the last
    /// data segment was marked (DCTCP.CE of RFC 8257).
    ece: bool,
    /// An acknowledgment of what came before the mark changed.
    prior: Option<PriorAck>,
}

/// An acknowledgment of data that met marks otherwise than what followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PriorAck {
    /// The next byte expected then.
    pub(crate) next: u64,
    pub(crate) ece: bool,
}

impl EcnEcho {
    pub(super) fn new(mode: EcnMode) -> Self {
        Self {
            mode,
            ece: false,
            prior: None,
        }
    }

    /// A data segment arrives while `next` is expected and, if `waiting`, data below waits for its
    /// delayed acknowledgment. Returns whether it must be acknowledged at once.
    ///
    /// DCTCP: where the mark changes, what waits is acknowledged with the echo that it deserves, so
    /// that every acknowledgment's echo holds for all the bytes that it acknowledges.
    #[inline]
    pub(super) fn on_data(&mut self, marked: bool, cwr: bool, next: u64, waiting: bool) -> bool {
        match self.mode {
            EcnMode::Off => false,
            EcnMode::Classic => {
                self.ece = marked || (self.ece && !cwr);
                // Linux acknowledges CWR at once, which keeps a window of one segment going.
                cwr
            }
            EcnMode::Dctcp => {
                if marked == self.ece {
                    return false;
                }
                if waiting {
                    self.prior = Some(PriorAck {
                        next,
                        ece: self.ece,
                    });
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

    /// The acknowledgment that goes before the next one.
    #[inline]
    pub(crate) fn take_prior(&mut self) -> Option<PriorAck> {
        self.prior.take()
    }

    #[inline]
    pub(crate) fn has_prior(&self) -> bool {
        self.prior.is_some()
    }
}
