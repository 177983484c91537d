//! The machine.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::Error;

/// CPUs that are online, in the kernel's list format. Not the same as
/// `available_parallelism`, which is what this process may use.
const CPUS_ONLINE: &str = "/sys/devices/system/cpu/online";

/// Inode of the host's own PID namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
const HOST_PIDS: u64 = 0xEFFF_FFFC;

/// What does not work in a PID namespace other than the host's, and what to do.
const OTHER_PIDS: &str = "tlsprof runs in a PID namespace of its own, such as a container's, but the \
    kernel reports process IDs of the host: `--port` and `--service` find no handshakes, CPU samples \
    have no service. Run it in the host's PID namespace: docker --pid=host, in Kubernetes hostPID: true";

/// The machine, as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Host name (uname's nodename).
    pub hostname: String,
    /// Kernel release (`6.1.0-18-amd64`).
    pub kernel: String,
    /// CPUs online.
    pub cpus: u32,
}

impl Host {
    /// Asks the kernel.
    ///
    /// # Errors
    /// [`Error`] if the list of CPUs cannot be read or understood.
    pub fn read() -> Result<Self, Error> {
        let uname = rustix::system::uname();
        Ok(Self {
            hostname: uname.nodename().to_string_lossy().into_owned(),
            kernel: uname.release().to_string_lossy().into_owned(),
            cpus: cpus_online(Path::new(CPUS_ONLINE))?,
        })
    }
}

/// Why what the kernel reports cannot be matched with processes here, and what to do, without a
/// full stop; None in the host's PID namespace, and where the kernel does not say.
pub fn other_pid_namespace() -> Option<&'static str> {
    let own = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    (own != HOST_PIDS).then_some(OTHER_PIDS)
}

/// Whether the CPU that asks has instructions for AES.
pub fn aes_in_hardware() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

fn cpus_online(path: &Path) -> Result<u32, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    count_cpus(&text).ok_or_else(|| Error::malformed(path.into(), text.as_bytes()))
}

/// Number of CPUs in a list such as `0-3,8,10-11`; None if it is not one.
fn count_cpus(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use super::*;

    #[test]
    fn counts_ranges_and_single_cpus() {
        for (list, count) in [
            ("0\n", Some(1)),
            ("0-3\n", Some(4)),
            ("0-3,8,10-11", Some(7)),
            ("0,2,4", Some(3)),
        ] {
            assert_eq!(count_cpus(list), count, "{list}");
        }
    }

    #[test]
    fn refuses_what_is_no_list() {
        for list in ["", "\n", "3-1", "a", "0-", "0-4294967295,0", "-1"] {
            assert_eq!(count_cpus(list), None, "{list:?}");
        }
    }

    #[test]
    fn reads_this_host() {
        let host = Host::read().unwrap();
        assert!(host.cpus > 0);
        assert!(!host.kernel.is_empty());
    }
}
