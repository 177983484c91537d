//! Tells systemd how the agent is getting on (sd_notify(3)). Nothing where none has started it.

use sd_notify::NotifyState;

/// The profile is under way.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is being read again; [`ready`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "no monotonic clock"),
    }
}

/// The agent ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        let socket = std::env::var("NOTIFY_SOCKET").unwrap_or_default();
        tracing::warn!(
            "cannot notify the service manager at NOTIFY_SOCKET={socket}: {error}. It must be the \
             path of a socket; abstract sockets (@) are not supported"
        );
    }
}
