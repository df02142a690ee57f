//! Converts the parameters of a test to the transports' settings.

use weir_congestion::AlgorithmSpec;
use weir_net::TransportConfig;
use weir_net::dcudp::{DcudpConfig, Feedback};

use super::error::Error;
use super::parameters::{DEFAULT_RATE, Parameters, Profile};
use crate::tcp::{Tcp, TcpSettings, check_congestion};

/// The application protocol of data connections (RFC 7301).
pub(super) const PROTOCOL: &[u8] = b"weir-perf";

/// The range that `TCP_MAXSEG` accepts (`TCP_MIN_MSS` and `MAX_TCP_WINDOW` of the kernel).
const SEGMENT_SIZES: std::ops::RangeInclusive<u64> = 88..=32_767;

/// Returns the settings of DCQUIC.
///
/// # Errors
/// [`Error::Parameter`] for an unknown congestion control or parameter, or an invalid packet size.
pub(super) fn dcquic(test: &Parameters) -> Result<TransportConfig, Error> {
    let mut transport = crate::dcquic::settings(test.packet_size);
    if let Some(algorithm) = algorithm(test)? {
        transport.congestion = algorithm.into();
    }
    if test.packet_size.is_some() {
        transport
            .validate()
            .map_err(|error| Error::parameter("mps", error.to_string()))?;
    }
    Ok(transport)
}

/// Returns the settings of DCUDP, without the key.
///
/// # Errors
/// [`Error::Parameter`] for an unknown congestion control or parameter, or an invalid rate or
/// packet size.
pub(super) fn dcudp(test: &Parameters) -> Result<DcudpConfig, Error> {
    let mut config = match test.profile.unwrap_or_default() {
        Profile::Shared => DcudpConfig::shared(),
        Profile::DataCenter => DcudpConfig::new(DEFAULT_RATE),
    };
    let transport = &mut config.transport;
    if let Some(rate) = test.rate {
        transport.rate = rate;
    }
    transport.congestion_on_loss |= test.congestion_on_loss;
    if !transport.udp_mode && test.congestion_on_loss {
        let problem = "with the profile `shared` every loss is congestion; leave it out, or choose \
                       --profile data-center";
        return Err(Error::parameter("congestion-on-loss", problem.to_owned()));
    }
    if let Some(algorithm) = algorithm(test)? {
        // DCUDP's own congestion control counts echoes; the others use the number of marked bytes.
        transport.feedback = match algorithm.name() {
            "dcudp" => Feedback::Echo,
            _ => Feedback::Counts,
        };
        if !transport.udp_mode && algorithm.name() == "dcudp" {
            let problem = "it begins at the rate of UDP Mode: choose --profile data-center for it";
            return Err(Error::parameter("congestion", problem.to_owned()));
        }
        transport.congestion = algorithm;
    }
    if let Some(size) = test.packet_size {
        transport.packet_size = size;
    }
    transport.validate().map_err(|error| {
        let name = if error.setting == "packet_size" {
            "mps"
        } else {
            error.setting
        };
        Error::parameter(name, format!("it must be {}", error.accepted))
    })?;
    Ok(config)
}

fn algorithm(test: &Parameters) -> Result<Option<AlgorithmSpec>, Error> {
    let parsed = test.congestion.as_ref().map(|text| text.parse());
    parsed
        .transpose()
        .map_err(|error| Error::parameter("congestion", format!("{error}")))
}

/// Returns kernel TCP with Nagle's algorithm.
pub(super) fn tcp(test: &Parameters) -> Tcp {
    Tcp {
        settings: TcpSettings {
            congestion: test.congestion.clone(),
            mss: test.packet_size,
            nagle: true,
            ..TcpSettings::default()
        },
        connect_timeout: None,
    }
}

/// Checks that this machine's kernel supports the test's parameters.
///
/// # Errors
/// [`Error::Parameter`] for a segment size that it does not accept, or a congestion control that it
/// does not have.
pub(super) fn check_tcp(test: &Parameters) -> Result<(), Error> {
    if let Some(size) = test.packet_size
        && !SEGMENT_SIZES.contains(&size.bytes())
    {
        let (least, most) = (SEGMENT_SIZES.start(), SEGMENT_SIZES.end());
        let problem =
            format!("{size}: over tcp it is the largest segment, from {least}B to {most}B");
        return Err(Error::parameter("mps", problem));
    }
    let Some(name) = &test.congestion else {
        return Ok(());
    };
    if let Some((name, _)) = name.split_once(',') {
        let problem = format!("the kernel's `{name}` takes no parameters");
        return Err(Error::parameter("congestion", problem));
    }
    check_congestion(name).map_err(|error| Error::parameter("congestion", error.to_string()))
}
