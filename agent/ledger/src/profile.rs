//! Samples by the code that they hit, for a CPU breakdown.

use std::collections::BTreeMap;

use tlsprof_common::ImageId;
use tlsprof_evidence::activity::{Activity, Mode};

/// Different spots that are kept apart. A CPU at 99 Hz hits some thousands in a minute.
const MOST_SPOTS: usize = 50_000;

/// Where a sampled instruction is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// In a file.
    Image {
        /// Which.
        image: ImageId,
        /// Offset in the file, in bytes; None beyond what is kept apart.
        offset: Option<u64>,
    },
    /// At an address of the kernel.
    Kernel(u64),
    /// In memory that is no file: just-in-time code; or the process is gone.
    Elsewhere,
}

/// What samples have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Name of the service.
    pub service: String,
    /// What it was doing.
    pub activity: Activity,
    /// In which mode.
    pub mode: Mode,
    /// In which code.
    pub code: Code,
}

/// How often each spot was hit; bounded.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    spots: BTreeMap<Spot, u64>,
}

impl Profile {
    /// Adds samples. Beyond the bound, code in a file is merged into one for the file,
    /// and functions of the kernel into one without a name.
    pub fn add(&mut self, spot: Spot, count: u64) {
        self.add_within(MOST_SPOTS, spot, count);
    }

    fn add_within(&mut self, bound: usize, mut spot: Spot, count: u64) {
        if self.spots.len() >= bound && !self.spots.contains_key(&spot) {
            spot.code = spot.code.merged();
        }
        let samples = self.spots.entry(spot).or_default();
        *samples = samples.saturating_add(count);
    }

    /// All spots with their samples.
    pub fn spots(&self) -> impl Iterator<Item = (&Spot, u64)> {
        self.spots.iter().map(|(spot, count)| (spot, *count))
    }
}

impl Code {
    /// The little code that stands for all others. Images are as few as the session opens.
    fn merged(self) -> Self {
        match self {
            Self::Image { image, .. } => Self::Image {
                image,
                offset: None,
            },
            Self::Kernel(_) => Self::Kernel(0),
            Self::Elsewhere => Self::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::Device;

    fn spot(code: Code) -> Spot {
        Spot {
            service: "nginx.service".into(),
            activity: Activity::Encryption,
            mode: Mode::User,
            code,
        }
    }

    fn image(offset: Option<u64>) -> Code {
        let device = Device { major: 8, minor: 1 };
        let image = ImageId { device, inode: 7 };
        Code::Image { image, offset }
    }

    #[test]
    fn no_sample_is_lost_beyond_the_bound_and_memory_is_bounded() {
        let mut profile = Profile::default();
        for round in 0..2 {
            for offset in 0..100 {
                profile.add_within(10, spot(image(Some(offset))), 1 + round);
                profile.add_within(10, spot(Code::Kernel(offset + 1)), 1 + round);
            }
        }
        assert_eq!(profile.spots().count(), 12);
        assert_eq!(profile.spots().map(|(_, count)| count).sum::<u64>(), 600);
        let merged = [image(None), Code::Kernel(0)].map(spot);
        for one in merged {
            assert!(
                profile
                    .spots()
                    .any(|(kept, count)| *kept == one && count == 3 * 95)
            );
        }
    }
}
