//! `[[switches.NAME.tcon]]`: which flows a switch controls in place of their senders, and how.

use weir_policy::{Match, TconControl};

use super::{Builder, HostIndex};
use crate::congestion;
use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

/// A rule of a switch with transparent congestion control; the first one that fits a flow's data holds.
#[derive(Clone, Debug, PartialEq)]
pub struct TconRule {
    /// Who sends the data; anybody, if none is named.
    pub from: Vec<HostIndex>,
    /// Who receives it; anybody, if none is named.
    pub to: Vec<HostIndex>,
    /// What is done; nothing where it is `None`.
    pub control: Option<TconControl>,
}

pub(super) const TCON_KEY: Key = Key::optional(
    "tcon",
    Accepts::Other("a list of tables"),
    "the switch leaves TCP to its ends",
    "transparent congestion control: whose data the switch controls, the first rule that fits",
);

pub(crate) static TCON: Section = Section {
    title: "[[switches.NAME.tcon]]",
    doc: "Transparent congestion control: see docs/tcon.md. The switch keeps the data of TCP flows that a \
          rule names, repairs their losses, and lowers their receivers' windows to those of an algorithm. \
          The first rule that fits a flow's data holds; data that none fits is left alone.",
    keys: &[
        Key::optional(
            "from",
            Accepts::Other("the name of a host or of several hosts, or a list of names"),
            "anybody",
            "who sends the data",
        ),
        Key::optional(
            "to",
            Accepts::Other("the name of a host or of several hosts, or a list of names"),
            "anybody",
            "who receives it",
        ),
        CONGESTION,
        PASS,
        ECN,
        BUFFER,
    ],
};

/// What a rule does with the flows that fit, here and in a policy.
pub(crate) const CONGESTION: Key = Key::optional(
    "congestion",
    congestion::ACCEPTS,
    "`pass` must be `true`",
    "the algorithm that takes the place of the sender's",
);
pub(crate) const PASS: Key = Key::default(
    "pass",
    Accepts::Boolean,
    Literal::Boolean(false),
    "leaves the flows alone that fit, instead of `congestion`",
);
pub(crate) const ECN: Key = Key::optional(
    "ecn",
    Accepts::Boolean,
    "`true` for `dctcp` and `d2tcp`, otherwise `false`",
    "negotiates ECN with the receiver on behalf of a sender that does not know of it",
);
pub(crate) const BUFFER: Key = Key::default(
    "buffer",
    Accepts::SIZE,
    Literal::Text("4MiB"),
    "how much of one flow's data may be kept until it is acknowledged",
);

/// What a rule with the four keys above does; `None` where it leaves flows alone.
pub(crate) fn control(fields: &Fields<'_>) -> Result<Option<TconControl>, Reported> {
    let (ecn, buffer) = (fields.optional("ecn"), fields.get("buffer"));
    let algorithm = fields.at("congestion").map(|at| congestion::read(&at));
    let pass: bool = fields.get("pass")?;
    let (algorithm, ecn, buffer) = (algorithm.transpose()?, ecn?, buffer?);
    match (algorithm, pass) {
        (Some(congestion), false) => Ok(Some(TconControl {
            congestion,
            ecn,
            buffer,
        })),
        (None, true) if !fields.has("ecn") && !fields.has("buffer") => Ok(None),
        (None, true) => {
            let key = if fields.has("ecn") { "ecn" } else { "buffer" };
            Err(fields.blame(key).conflict(
                "flows that pass are not looked at",
                format!("remove `{key}`, or write `congestion` instead of `pass`"),
            ))
        }
        (Some(_), true) => Err(fields.blame("pass").conflict(
            "flows cannot be controlled and left alone",
            "write one of `congestion` and `pass = true`",
        )),
        (None, false) => Err(fields.at.conflict(
            "the rule does not say what is to be done",
            "write one of `congestion` and `pass = true`",
        )),
    }
}

impl TconRule {
    pub(super) fn read(at: At<'_>, builder: &Builder<'_>) -> Result<Self, Reported> {
        let fields = Fields::open(at, &TCON)?;
        let hosts = |key| match fields.at(key) {
            Some(at) => builder.names.hosts(&at),
            None => Ok(Vec::new()),
        };
        let (from, to) = (hosts("from"), hosts("to"));
        let control = control(&fields);
        let (from, to, control) = (from?, to?, control?);
        Ok(Self { from, to, control })
    }
}

/// Data from one host to another.
impl Match<(HostIndex, HostIndex)> for TconRule {
    fn matches(&self, (from, to): &(HostIndex, HostIndex)) -> bool {
        let names = |hosts: &[HostIndex], host| hosts.is_empty() || hosts.contains(host);
        names(&self.from, from) && names(&self.to, to)
    }
}
