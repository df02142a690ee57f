//! DCUDP: a scenario's options as the engine's configuration, for simulated and real endpoints.

use weir_congestion::AlgorithmSpec;
use weir_dcudp::{
    AckInterval, ConditionRule, ConfigError, EchoRule, Feedback, QuitConfig, RttSource,
    TransportConfig,
};
use weir_scenario::{
    DcudpAckInterval, DcudpCondition, DcudpEcho, DcudpFeedback, DcudpOptions, DcudpQuit, DcudpRtt,
};
use weir_units::{Duration, Rate};

/// Returns the configuration of a group's connections with these options and this congestion control,
/// whose senders have links of `line_rate`.
///
/// # Errors
/// The first option that the engine rejects.
pub fn dcudp_transport(
    options: &DcudpOptions,
    congestion: &AlgorithmSpec,
    line_rate: Rate,
) -> Result<TransportConfig, ConfigError> {
    let transport = TransportConfig {
        udp_mode: options.udp_mode,
        congestion: congestion.clone(),
        feedback: match options.feedback {
            DcudpFeedback::Echo => Feedback::Echo,
            DcudpFeedback::Counts => Feedback::Counts,
        },
        packet_size: options.packet_size,
        receive_window: options.receive_window,
        send_buffer: options.send_buffer,
        echo: match options.echo {
            DcudpEcho::UntilReduced => EchoRule::UntilReduced,
            DcudpEcho::SinceLastAck => EchoRule::SinceLastAck,
        },
        quit: quit(options.quit),
        ack_interval: match options.ack_interval {
            DcudpAckInterval::Rtt => AckInterval::RoundTrip,
            DcudpAckInterval::IdleRtt => AckInterval::IdleRoundTrip,
        },
        congestion_on_loss: options.congestion_on_loss,
        initial_rtt: options.initial_rtt,
        min_ack_interval: options.min_ack_interval,
        request_interval: options.request_interval,
        pacing_quantum: options.pacing_quantum.unwrap_or(Duration::ZERO),
        ..TransportConfig::new(options.rate.unwrap_or(line_rate))
    };
    transport.validate()?;
    Ok(transport)
}

fn quit(options: DcudpQuit) -> QuitConfig {
    QuitConfig {
        window: options.window,
        ecn_threshold: options.ecn_threshold,
        rtt_threshold: options.rtt_threshold,
        beta: options.beta,
        condition: match options.condition {
            DcudpCondition::Above => ConditionRule::Above,
            DcudpCondition::Below => ConditionRule::Below,
        },
        rtt: match options.rtt {
            DcudpRtt::Smoothed => RttSource::Smoothed,
            DcudpRtt::Current => RttSource::Current,
        },
        rtt_tolerance: options.rtt_tolerance,
    }
}
