//! Scrapes have the CPU time of their own moment, as they have the handshakes: else CPU time,
//! which is read each second, would lack up to a second of what handshakes used, and a
//! service that has just begun would use more in handshakes than in all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// A scrape waits no longer: a profile that has this much to do is behind with handshakes too.
const PATIENCE: Duration = Duration::from_millis(300);

/// Between scrapes, which ask for a reading of CPU time, and the profile, which makes it.
#[derive(Debug, Default)]
pub struct Renewal {
    /// There is a profile.
    attended: AtomicBool,
    wanted: AtomicBool,
    made: Notify,
}

impl Renewal {
    /// Asks for a reading, and waits until it is booked; bounded.
    pub(crate) async fn ask(&self) {
        if !self.attended.load(Ordering::Acquire) {
            return;
        }
        let made = self.made.notified();
        self.wanted.store(true, Ordering::Release);
        if timeout(PATIENCE, made).await.is_err() {
            tracing::debug!("a scrape has CPU times of the second before");
        }
    }

    /// Whether a reading is wanted.
    pub fn is_wanted(&self) -> bool {
        self.attended.store(true, Ordering::Release);
        self.wanted.load(Ordering::Acquire)
    }

    /// A reading is booked.
    pub fn made(&self) {
        self.wanted.store(false, Ordering::Release);
        self.made.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_scrape_waits_for_a_reading() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(async {
            let renewal = Arc::new(Renewal::default());
            // Nobody would make it.
            renewal.ask().await;
            assert!(!renewal.is_wanted());
            let asking = Arc::clone(&renewal);
            let scrape = tokio::spawn(async move { asking.ask().await });
            while !renewal.is_wanted() {
                tokio::task::yield_now().await;
            }
            assert!(!scrape.is_finished());
            renewal.made();
            scrape.await.unwrap();
            assert!(!renewal.is_wanted());
        });
    }
}
