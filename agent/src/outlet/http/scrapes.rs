//! The metrics as bodies of answers, few of them at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::outlet::metrics::format::Format;
use crate::outlet::metrics::{EncodeError, Metrics};

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
    last: Mutex<HashMap<Format, Made>>,
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
    pub(super) async fn body(&self, format: Format) -> Result<Bytes, EncodeError> {
        // Those who wait here get what the first of them makes.
        let mut last = self.last.lock().await;
        last.retain(|_, made| made.is_fresh());
        if let Some(made) = last.get(&format) {
            return Ok(made.body.clone());
        }
        // An error: closed, which it never is.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let begun = Instant::now();
        let bytes = self.metrics.encode(format)?;
        let body = Bytes::from_owner(Placed {
            bytes,
            _place: place,
        });
        let made = Made {
            body: body.clone(),
            at: Instant::now(),
            took: begun.elapsed(),
        };
        last.insert(format, made);
        Ok(body)
    }
}
