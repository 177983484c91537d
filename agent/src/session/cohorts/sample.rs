//! Some of many things, and means of them. Pure.

/// Things of a kind that are kept, at most. The mean of so many is off by a sixteenth of the
/// spread.
const MOST_KEPT: usize = 256;

/// Things that were seen: one in so many that those kept are spread over all of them.
#[derive(Debug)]
pub(super) struct Sample<T> {
    kept: Vec<T>,
    one_in: u64,
    /// How many there were.
    count: u64,
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            one_in: 1,
            count: 0,
        }
    }
}

impl<T> Sample<T> {
    /// Takes note of one; `make` makes it where it is kept.
    pub(super) fn add(&mut self, make: impl FnOnce() -> T) {
        if self.kept.len() == MOST_KEPT && self.is_next_kept() {
            let mut nth = 0;
            self.kept.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.one_in *= 2;
        }
        if self.is_next_kept() {
            self.kept.push(make());
        }
        self.count += 1;
    }

    fn is_next_kept(&self) -> bool {
        self.count.is_multiple_of(self.one_in)
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn into_kept(self) -> Vec<T> {
        self.kept
    }
}

/// A mean, and its variance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Mean {
    /// Of values, of which there is at least one.
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    pub(super) fn of(values: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let count = values.len() as f64;
        let mean = values.clone().sum::<f64>() / count;
        let variance = match values.len() {
            // One says nothing of the spread: as much as itself.
            1 => mean.powi(2),
            _ => values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count,
        };
        Self { mean, variance }
    }

    /// Of the share of connections with a handshake. The variance is that of Agresti and Coull
    /// (1998), which is above 0 also where all had one.
    #[allow(clippy::cast_precision_loss, reason = "counts of a second")]
    pub(super) fn of_share(handshakes: u64, connections: usize) -> Self {
        let (handshakes, connections) = (handshakes as f64, connections as f64);
        let share = (handshakes + 2.0) / (connections + 4.0);
        Self {
            mean: handshakes / connections,
            variance: share * (1.0 - share).max(0.0) / (connections + 4.0),
        }
    }

    /// Connections of a window are more alike than those between two: both the window and what
    /// follows it vary as much as windows do, each with half the square of their difference.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        let between = before.map_or(0.0, |before| (self.mean - before.mean).powi(2));
        Self {
            variance: self.variance.max(between),
            ..self
        }
    }

    /// The same where one window says nothing of others: the first may be off by as much as
    /// itself.
    pub(super) fn after_any(self, before: Option<Self>) -> Self {
        self.after(Some(before.unwrap_or_default()))
    }
}

/// What another `length` adds to the variance of a sum of which so much is there, where all have the
/// same error: that of one has this variance.
pub(super) fn added_variance(before: f64, length: f64, variance: f64) -> f64 {
    length * 2.0f64.mul_add(before, length) * variance
}
