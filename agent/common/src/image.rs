//! What identifies an executable file that a process maps.

use std::fmt;

/// A block device, or the number that stands for a file system without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// Major number; 0 for file systems without a block device.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// What identifies an image while a process maps them. The kernel may use the
/// inode number for another file as soon as none does, and no probe is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId {
    /// The file system's device, as /proc/PID/maps shows it.
    pub device: Device,
    /// The inode number, as /proc/PID/maps shows it.
    pub inode: u64,
}

impl ImageId {
    /// Whether the two may be one file, which has its probes through either. Since Linux 6.8 maps show a file
    /// of an overlay with the overlay's own device and the inode number of the file beneath: each
    /// container has a device of its own for what is one file of a layer that they share.
    pub fn may_be(self, other: Self) -> bool {
        let devices = [self.device, other.device];
        self.inode == other.inode
            && (self.device == other.device || devices.iter().any(|device| device.major == 0))
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:02x}:{:02x}:{}",
            self.device.major, self.device.minor, self.inode
        )
    }
}
