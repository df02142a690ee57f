//! `[[switches.NAME.tcon]]`: rules of transparent congestion control in a switch.

use weir_congestion::AlgorithmSpec;
use weir_policy::{Match, TconControl};
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use super::HostIndex;
use super::names::{HOSTS, Names};
use crate::congestion;
use crate::document::Reported;
use crate::schema::{Accepts, Fields};

/// A rule of a switch with transparent congestion control; the first rule that matches a flow's
/// data applies.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(
    title = "[[switches.NAME.tcon]]",
    doc = "Transparent congestion control: see docs/tcon.md. The switch keeps the data of TCP flows that a \
           rule names, repairs their losses, and lowers their receivers' windows to those of an algorithm. \
           The first rule that fits a flow's data holds; data that none fits is left alone.",
    context = &Names
)]
pub struct TconRule {
    /// The sender of the data.
    #[key(accepts = HOSTS, absent = "any", or = Vec::new(), read = context.hosts(at))]
    pub from: Vec<HostIndex>,
    /// The receiver of the data.
    #[key(accepts = HOSTS, absent = "any", or = Vec::new(), read = context.hosts(at))]
    pub to: Vec<HostIndex>,
    /// The control of the matching flows; `None` leaves them alone.
    #[key(keys = ControlKeys, by = control(fields))]
    pub control: Option<TconControl>,
}

/// The keys of a rule's control, here and in a policy.
#[derive(Keys)]
pub(crate) struct ControlKeys {
    /// The algorithm that replaces the sender's.
    #[key(
        accepts = congestion::ACCEPTS,
        absent = "`pass` must be `true`",
        read = congestion::read(at)
    )]
    congestion: Option<AlgorithmSpec>,
    /// Leaves the matching flows alone; instead of `congestion`.
    #[key(default = false)]
    pass: bool,
    /// Negotiates ECN with the receiver on behalf of a sender that does not support it.
    #[key(absent = "`true` for `dctcp` and `d2tcp`, otherwise `false`")]
    ecn: Option<bool>,
    /// The maximum of one flow's data that is buffered until it is acknowledged.
    #[key(accepts = Accepts::SIZE, default = "4MiB")]
    buffer: ByteSize,
}

/// Reads [`ControlKeys`]; `None` if the rule leaves flows alone.
pub(crate) fn control(fields: &Fields<'_>) -> Result<Option<TconControl>, Reported> {
    let keys = ControlKeys::read_keys(fields, ())?;
    match (keys.congestion, keys.pass) {
        (Some(congestion), false) => Ok(Some(TconControl {
            congestion,
            ecn: keys.ecn,
            buffer: keys.buffer,
        })),
        (None, true) => match ["ecn", "buffer"].iter().find(|key| fields.has(key)) {
            None => Ok(None),
            Some(key) => Err(fields.error_position(key).conflict(
                "flows that pass are not looked at",
                format!("remove `{key}`, or write `congestion` instead of `pass`"),
            )),
        },
        (Some(_), true) => Err(fields.error_position("pass").conflict(
            "flows cannot be controlled and left alone",
            "write one of `congestion` and `pass = true`",
        )),
        (None, false) => Err(fields.at.conflict(
            "the rule does not say what is to be done",
            "write one of `congestion` and `pass = true`",
        )),
    }
}

/// Matches data from one host to another.
impl Match<(HostIndex, HostIndex)> for TconRule {
    fn matches(&self, (from, to): &(HostIndex, HostIndex)) -> bool {
        let names = |hosts: &[HostIndex], host| hosts.is_empty() || hosts.contains(host);
        names(&self.from, from) && names(&self.to, to)
    }
}
