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

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:02x}:{:02x}:{}",
            self.device.major, self.device.minor, self.inode
        )
    }
}
