//! What a service manager is told (sd_notify(3)): systemd, or another one that listens at
//! `$NOTIFY_SOCKET`. Without one, nothing happens.

use sd_notify::NotifyState;

/// The command has begun its work.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The command takes the place of the service's main process: [`ready`] follows.
pub(crate) fn succeeds() {
    tell(&[NotifyState::MainPid(std::process::id())]);
}

/// A configuration file is read again; [`ready`] follows.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("there is no monotonic clock: {error}"),
    }
}

/// What the command does now.
pub(crate) fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// The command ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot tell the service manager at $NOTIFY_SOCKET: {error}");
    }
}
