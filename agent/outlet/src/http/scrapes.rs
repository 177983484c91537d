//! The metrics as bodies of answers, few of them at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::metrics::format::Format;
use crate::metrics::{EncodeError, Metrics};

use super::coding::Coding;

/// Bodies in memory at once; slow readers of one share it.
const BODIES: usize = 8;
/// A body is given out again while it is at most this many times as old as it
/// took to make: so however many scrapes come, making them takes at most a fifth
/// of one CPU, and what they get is hardly older than it would be anyway.
const REUSE: u32 = 4;

/// Makes bodies.
#[derive(Debug)]
pub(super) struct Scrapes {
    metrics: Arc<Metrics>,
    places: Arc<Semaphore>,
    last: Mutex<HashMap<(Format, Coding), Made>>,
}

/// A body that was made for one scrape, and may do for another.
#[derive(Debug)]
struct Made {
    body: Bytes,
    at: Instant,
    took: Duration,
}

impl Made {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() <= self.took * REUSE
    }
}

/// The bytes, and the place that they take up until the last reader has them.
struct Placed {
    bytes: Vec<u8>,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Scrapes {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            places: Arc::new(Semaphore::new(BODIES)),
            last: Mutex::default(),
        }
    }

    /// All metrics in that format. Waits while too many bodies are on their way
    /// to slow readers.
    ///
    /// # Errors
    /// When the metrics cannot be encoded.
    pub(super) async fn body(&self, format: Format, coding: Coding) -> Result<Bytes, EncodeError> {
        // Not under the lock: all who ask wait for the same reading.
        self.metrics.renewal().ask().await;
        // Those who wait here get what the first of them makes.
        let mut last = self.last.lock().await;
        last.retain(|_, made| made.is_fresh());
        if let Some(made) = last.get(&(format, coding)) {
            return Ok(made.body.clone());
        }
        // An error: closed, which it never is.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let begun = Instant::now();
        let bytes = coding.write(self.metrics.encode(format)?);
        let body = Bytes::from_owner(Placed {
            bytes,
            _place: place,
        });
        let made = Made {
            body: body.clone(),
            at: Instant::now(),
            took: begun.elapsed(),
        };
        last.insert((format, coding), made);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tokio::time::timeout;

    use super::*;
    use crate::metrics::SharedLedger;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    fn scrapes() -> Scrapes {
        Scrapes::new(Arc::new(Metrics::new(&SharedLedger::default())))
    }

    /// A body of its own, as if the last one had been made long ago.
    async fn another(scrapes: &Scrapes) -> Bytes {
        scrapes.last.lock().await.clear();
        scrapes
            .body(Format::PlainText, Coding::Identity)
            .await
            .unwrap()
    }

    #[test]
    fn bodies_that_nobody_reads_make_the_next_one_wait() {
        runtime().block_on(async {
            let scrapes = scrapes();
            let mut unread = Vec::new();
            for _ in 0..BODIES {
                unread.push(another(&scrapes).await);
            }
            let next = timeout(Duration::from_millis(50), another(&scrapes)).await;
            assert!(next.is_err(), "a body beyond the bound");
            unread.pop();
            assert!(!another(&scrapes).await.is_empty());
        });
    }

    #[test]
    fn scrapes_that_come_together_share_a_body() {
        runtime().block_on(async {
            let scrapes = scrapes();
            let first = another(&scrapes).await;
            // As if it had taken long to make.
            for made in scrapes.last.lock().await.values_mut() {
                made.took = Duration::from_secs(60);
            }
            let second = scrapes
                .body(Format::PlainText, Coding::Identity)
                .await
                .unwrap();
            assert_eq!(first.as_ptr(), second.as_ptr());
            let other = scrapes.body(Format::PlainText, Coding::Gzip).await.unwrap();
            assert_ne!(first, other);
            // And as if that had been long ago.
            for made in scrapes.last.lock().await.values_mut() {
                made.took = Duration::ZERO;
            }
            let third = scrapes
                .body(Format::PlainText, Coding::Identity)
                .await
                .unwrap();
            assert_ne!(first.as_ptr(), third.as_ptr());
        });
    }
}
