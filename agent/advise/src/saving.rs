//! What a change would save.

use super::{CostSource, Range};

/// What is known of the saving.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// CPU time, from known costs.
    Saving(Saving),
    /// At most so much, and nobody can say how much: it depends on what is said in
    /// the text.
    AtMost(Saving, String),
    /// Time that handshakes wait, in seconds each. It frees no CPU.
    Latency(Range),
    /// There is one, but no cost is known to predict it from: the reason.
    Unknown(String),
    /// Nothing that can be put in CPU time: a fact, or another kind of harm.
    Nothing,
}

/// CPU time that a change would have saved during the profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// Seconds.
    pub cpu: Range,
    /// Share (0 to 1) of the service's CPU time.
    pub share: Range,
    /// Where the cost of the alternative was measured.
    pub source: CostSource,
    /// How the figure comes about, in a sentence.
    pub method: String,
    /// Handshakes whose cost is unknown are left out.
    pub is_lower_bound: bool,
    /// The same for other extents of the change.
    pub variants: Vec<Variant>,
}

/// Another extent of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// What it is, such as `10 requests a connection`.
    pub change: String,
    /// Share (0 to 1) of the service's CPU time.
    pub share: Range,
}

impl Saving {
    /// How many times the work the same CPU could do after the change.
    pub fn capacity(&self) -> Range {
        // All of it cannot be saved: that would be no service.
        self.share.map(|share| 1.0 / (1.0 - share.clamp(0.0, 0.99)))
    }
}

impl Prediction {
    /// The saving in CPU time, if there is a figure.
    pub(crate) const fn saving(&self) -> Option<&Saving> {
        match self {
            Self::Saving(saving) | Self::AtMost(saving, _) => Some(saving),
            _ => None,
        }
    }

    /// CPU seconds that are likely saved; 0 where there is no figure, or nothing
    /// sure in it.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::Saving(saving) => saving.cpu.likely,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_cpu_saved_is_twice_the_capacity() {
        let saving = Saving {
            cpu: Range::around(1.0, 0.0),
            share: Range {
                low: 0.2,
                likely: 0.5,
                high: 1.2,
            },
            source: CostSource::ThisService,
            method: String::new(),
            is_lower_bound: false,
            variants: Vec::new(),
        };
        let capacity = saving.capacity();
        assert!((capacity.low - 1.25).abs() < 1e-9);
        assert!((capacity.likely - 2.0).abs() < 1e-9);
        assert!(capacity.high.is_finite());
    }
}
