//! QUIC: a scenario's options as the engine's configuration, for simulated and real endpoints.

use weir_congestion::AlgorithmSpec;
use weir_quic::migration::{Detector, MigrationConfig, PaperParameters, SizeClassParameters};
use weir_quic::{ConfigError, Congestion, PacketSizePolicy, TransportConfig};
use weir_scenario::{MigrationDetector, MigrationOptions, QuicOptions, QuicPacketSize};
use weir_units::{ByteSize, Duration};

/// The UDP payload of the first packets if larger ones are probed: it fits 1280 bytes of IPv6, which every
/// path carries.
const PROBING_FROM: ByteSize = ByteSize::from_bytes(1252);
/// The largest possible UDP payload (RFC 9000, section 18.2).
const LARGEST_PAYLOAD: ByteSize = ByteSize::from_bytes(65_527);

/// Returns the configuration of a group's connections with these options and this congestion control.
///
/// # Errors
/// The first option that the engine rejects.
pub fn quic_transport(
    options: &QuicOptions,
    congestion: &AlgorithmSpec,
) -> Result<TransportConfig, ConfigError> {
    let profile = TransportConfig::data_center();
    let (packet_size, probe_up_to, packet_size_policy) = match options.packet_size {
        // The MTU of the interfaces bounds it.
        QuicPacketSize::Interface => (LARGEST_PAYLOAD, None, PacketSizePolicy::Largest),
        QuicPacketSize::Fixed(size) => (size, None, PacketSizePolicy::Largest),
        QuicPacketSize::Probe => (
            PROBING_FROM,
            Some(LARGEST_PAYLOAD),
            PacketSizePolicy::Largest,
        ),
        QuicPacketSize::ByTask => (LARGEST_PAYLOAD, None, PacketSizePolicy::ByTask),
    };
    let transport = TransportConfig {
        congestion: Congestion::Named(congestion.clone()),
        packet_size: Some(packet_size),
        probe_up_to,
        packet_size_policy,
        ecn: options.ecn,
        migration: migration(options.migration.as_ref()),
        // A pause of the workload must not end a connection by its idle timeout.
        keep_alive: profile.idle_timeout / 3,
        stream_keep_alive: Duration::ZERO,
        // A flow waits out an outage, as one over TCP does.
        max_probe_timeouts: 0,
        ..profile
    };
    transport.validate()?;
    Ok(transport)
}

fn migration(options: Option<&MigrationOptions>) -> MigrationConfig {
    let Some(options) = options else {
        return MigrationConfig {
            proactive: false,
            ..MigrationConfig::default()
        };
    };
    let MigrationOptions {
        long_window,
        short_window,
        alpha,
        ..
    } = *options;
    MigrationConfig {
        proactive: true,
        detector: match options.detector {
            MigrationDetector::Paper => Detector::Paper(PaperParameters {
                long_window,
                short_window,
                alpha,
            }),
            MigrationDetector::SizeClass { confirmations } => {
                Detector::SizeClass(SizeClassParameters {
                    long_window,
                    short_window,
                    alpha,
                    confirmations,
                })
            }
        },
        probe_timeouts: options.probe_timeouts,
        min_increase: options.min_increase,
        hysteresis: options.hysteresis,
        return_after: options.return_after,
    }
}
