//! The tables `[groups.NAME.workload]`.

use weir_units::{ByteSize, Duration, Rate};

use super::{Arrivals, ConnectionUse, Distribution, Workload, distribution};
use crate::Topology;
use crate::document::{At, Fields, Node, Reported, Table, Value, section_by_kind};
use crate::error::{ProblemKind, list, nearest};
use crate::schema::{Accepts, Key, Literal, Section};
use crate::topology::BOTTLENECK;

static BULK: Section = Section {
    title: "[groups.NAME.workload] kind = \"bulk\"",
    doc: "Each flow always has data to send. Short: `workload = \"bulk\"`.",
    keys: &[Key::kind(&["bulk"])],
};

static CBR: Section = Section {
    title: "[groups.NAME.workload] kind = \"cbr\"",
    doc: "Each flow sends packets at a constant rate. With TCP the application writes at that rate.",
    keys: &[
        Key::kind(&["cbr"]),
        Key::required(
            "rate",
            Accepts::RATE,
            "each flow's rate of IP bytes, headers included",
        ),
        Key::optional(
            "packet",
            Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_535)),
            "the smallest MTU of all links",
            "the IP length of each packet, or of what TCP is given at a time with its headers",
        ),
        Key::default(
            "arrivals",
            Accepts::Word(&["regular", "poisson"]),
            Literal::Text("regular"),
            "whether packets leave at equal distances or as a Poisson process",
        ),
    ],
};

static TRANSFER: Section = Section {
    title: "[groups.NAME.workload] kind = \"transfer\"",
    doc: "Each flow sends an amount, from its start on, and closes. With `rounds` it does so again and \
          again, each time as a flow of its own.",
    keys: &[
        Key::kind(&["transfer"]),
        Key::required("size", Accepts::SIZE, "how much each flow sends"),
        Key::default(
            "rounds",
            Accepts::Count(1, 1_000_000),
            Literal::Integer(1),
            "how often",
        ),
        Key::optional(
            "interval",
            Accepts::POSITIVE_SPAN,
            "there is one round",
            "how long after the beginning of one round the next one begins, whether that one is over or not; \
             each flow starts within the group's `start_within` from then",
        ),
    ],
};

static INCAST: Section = Section {
    title: "[groups.NAME.workload] kind = \"incast\"",
    doc: "Each host of `to` asks all hosts of `from` at once, waits until all have responded, and \
          asks again. Connections stay open. Each receiver's first request leaves at `start`, or at a \
          random time within `start_within`.",
    keys: &[
        Key::kind(&["incast"]),
        Key::required("response", Accepts::SIZE, "what each flow responds with"),
        Key::default(
            "rounds",
            Accepts::Count(1, 1_000_000),
            Literal::Integer(1),
            "how often each receiver asks",
        ),
        Key::default(
            "pause",
            Accepts::SPAN,
            Literal::Text("0s"),
            "how long a receiver waits after the last response before it asks again",
        ),
        Key::default(
            "spread",
            Accepts::SPAN,
            Literal::Text("0s"),
            "each sender begins to respond at a random time within this span",
        ),
    ],
};

static REQUEST_RESPONSE: Section = Section {
    title: "[groups.NAME.workload] kind = \"request-response\"",
    doc: "Each flow's `from` host sends a request, waits for the response and a pause, and sends the \
          next request.",
    keys: &[
        Key::kind(&["request-response"]),
        Key::required("request", Accepts::SIZE, "the size of a request"),
        Key::required("response", Accepts::SIZE, "the size of a response"),
        Key::default(
            "pause",
            Accepts::SPAN,
            Literal::Text("0s"),
            "how long the sender waits after each response",
        ),
        Key::optional(
            "requests",
            Accepts::Count(1, 1_000_000_000),
            "as many as there is time for",
            "how many requests each flow makes",
        ),
        Key::default(
            "connection",
            Accepts::Word(&["kept", "fresh"]),
            Literal::Text("kept"),
            "whether all requests of a flow take one connection, or each one of its own, whose \
             handshake then belongs to the time that the request takes",
        ),
    ],
};

static EPOCHS: Section = Section {
    title: "[groups.NAME.workload] kind = \"epochs\"",
    doc: "Requests in step: one request of each flow of every group with this workload makes an \
          epoch, and the next one begins when all are answered. The first one begins when all these \
          flows have started, and the run ends with the last one. Epochs are counted from 0; faults \
          may begin and end with them. Connections stay open.",
    keys: &[
        Key::kind(&["epochs"]),
        Key::required("request", Accepts::SIZE, "the size of a request"),
        Key::required("response", Accepts::SIZE, "the size of a response"),
        Key::required(
            "count",
            Accepts::Count(1, MOST_EPOCHS as u64),
            "how many epochs; the same in all groups that have any",
        ),
    ],
};

/// The most epochs of a run.
pub(crate) const MOST_EPOCHS: u32 = 10_000_000;

static POISSON: Section = Section {
    title: "[groups.NAME.workload] kind = \"poisson\"",
    doc: "Flows of random sizes arrive as a Poisson process, each a connection of its own between a \
          pair of the group's hosts, drawn evenly. `flows` has no meaning here.",
    keys: &[
        Key::kind(&["poisson"]),
        Key::optional(
            "mean_interval",
            Accepts::POSITIVE_SPAN,
            "`load` decides",
            "the mean time between two arrivals in the whole group; instead of `load`",
        ),
        Key::optional(
            "load",
            Accepts::Number(0.001, 10.0),
            "`mean_interval` decides",
            "the bytes that arrive, as a fraction of the rate of the port `of`; instead of \
             `mean_interval`",
        ),
        Key::optional(
            "of",
            Accepts::Other("the name of a port"),
            "`\"bottleneck\"`",
            "the port whose rate `load` is a fraction of",
        ),
        Key::required(
            "distribution",
            distribution::ACCEPTS,
            "the sizes of the flows",
        ),
    ],
};

/// All kinds of workloads.
pub(crate) static SECTIONS: [&Section; 7] = [
    &BULK,
    &CBR,
    &TRANSFER,
    &INCAST,
    &REQUEST_RESPONSE,
    &EPOCHS,
    &POISSON,
];

impl Workload {
    /// Reads a workload: a table, or the `kind` alone for one without other keys.
    pub(crate) fn read(at: &At<'_>, topology: &Topology) -> Result<Self, Reported> {
        let Value::Text(_) = &at.node.value else {
            return Self::read_table(at, topology);
        };
        let mut table = Table::default();
        table.set("kind", at.node.place.clone(), at.node.clone());
        let node = Node {
            value: Value::Table(table),
            ..at.node.clone()
        };
        let at = At {
            node: &node,
            key: at.key.clone(),
            problems: at.problems,
        };
        Self::read_table(&at, topology)
    }

    fn read_table(at: &At<'_>, topology: &Topology) -> Result<Self, Reported> {
        let section = section_by_kind(at, &SECTIONS)?;
        let fields = Fields::open(at.clone(), section)?;
        Ok(match section.kind() {
            Some("cbr") => read_cbr(&fields, topology)?,
            Some("transfer") => read_transfer(&fields)?,
            Some("incast") => {
                let (response, rounds) = (fields.get("response"), fields.get("rounds"));
                let (pause, spread) = (fields.get("pause"), fields.get("spread"));
                Self::Incast {
                    response: response?,
                    rounds: rounds?,
                    pause: pause?,
                    spread: spread?,
                }
            }
            Some("request-response") => {
                let (request, response) = (fields.get("request"), fields.get("response"));
                let (pause, requests) = (fields.get("pause"), fields.optional("requests"));
                let connection: Result<String, _> = fields.get("connection");
                Self::RequestResponse {
                    request: request?,
                    response: response?,
                    pause: pause?,
                    requests: requests?,
                    connection: match connection?.as_str() {
                        "fresh" => ConnectionUse::Fresh,
                        _ => ConnectionUse::Kept,
                    },
                }
            }
            Some("epochs") => {
                let (request, response) = (fields.get("request"), fields.get("response"));
                let count = fields.get("count");
                Self::Epochs {
                    request: request?,
                    response: response?,
                    count: count?,
                }
            }
            Some("poisson") => read_poisson(&fields, topology)?,
            _ => Self::Bulk,
        })
    }
}

fn read_cbr(fields: &Fields<'_>, topology: &Topology) -> Result<Workload, Reported> {
    let (rate, packet) = (fields.get("rate"), fields.optional("packet"));
    let arrivals: String = fields.get("arrivals")?;
    let mtu = topology.smallest_mtu();
    let packet = packet?.unwrap_or(mtu);
    if packet > mtu {
        return Err(fields.blame("packet").conflict(
            format!("packets of {packet} exceed the smallest MTU, {mtu}"),
            "set a smaller `packet`, or a larger `mtu`",
        ));
    }
    Ok(Workload::Cbr {
        rate: rate?,
        packet,
        arrivals: match arrivals.as_str() {
            "poisson" => Arrivals::Poisson,
            _ => Arrivals::Regular,
        },
    })
}

fn read_transfer(fields: &Fields<'_>) -> Result<Workload, Reported> {
    let (size, rounds) = (fields.get("size"), fields.get("rounds"));
    let interval = fields.optional("interval")?;
    let (size, rounds) = (size?, rounds?);
    match (rounds, interval) {
        (1, None) | (2.., Some(_)) => Ok(Workload::Transfer {
            size,
            rounds,
            interval,
        }),
        (1, Some(_)) => Err(fields.blame("interval").conflict(
            "one round has no interval to another",
            "remove it, or set `rounds`",
        )),
        _ => Err(fields.blame("rounds").conflict(
            format!("{rounds} rounds need an `interval`"),
            "say how long after the start of one round the next one starts",
        )),
    }
}

fn read_poisson(fields: &Fields<'_>, topology: &Topology) -> Result<Workload, Reported> {
    let distribution = fields
        .needed("distribution")
        .and_then(|at| Distribution::read(&at));
    let (interval, load) = (
        fields.optional::<Duration>("mean_interval")?,
        fields.optional::<f64>("load")?,
    );
    let distribution = distribution?;
    let mean_interval = match (interval, load) {
        (Some(interval), None) if fields.has("of") => {
            return Err(fields.blame("of").conflict(
                format!("`of` has no meaning beside `mean_interval`, {interval}"),
                "remove it, or write `load` instead of `mean_interval`",
            ));
        }
        (Some(interval), None) => interval,
        (None, Some(load)) => {
            let rate = reference_rate(fields, topology)?.mul_f64(load);
            // An empty mean would make an infinite number of arrivals.
            (rate.time_for(distribution.mean())).max(Duration::from_nanos(1))
        }
        _ => {
            return Err(fields.at.conflict(
                "one of `mean_interval` and `load` must say how often flows arrive",
                "write one of them",
            ));
        }
    };
    Ok(Workload::Poisson {
        mean_interval,
        distribution,
    })
}

/// The rate of the port that a load is a fraction of.
fn reference_rate(fields: &Fields<'_>, topology: &Topology) -> Result<Rate, Reported> {
    let name = match fields.at("of") {
        Some(at) => at.text("the name of a port")?,
        None => BOTTLENECK,
    };
    match topology.port_by_name(name) {
        Some(port) => Ok(topology.port(port).rate),
        None => {
            let names = || topology.ports.iter().map(|port| port.name.as_str());
            Err(fields.blame("of").problem(ProblemKind::UnknownName {
                what: "port",
                name: name.to_owned(),
                existing: list(names()),
                nearest: nearest(name, names()),
            }))
        }
    }
}
