//! Takes many elements of a hash map with one system call (bpf(2),
//! `BPF_MAP_LOOKUP_AND_DELETE_BATCH`; Linux 5.6, kernel commit 057996380a42), which aya
//! does not offer.
#![allow(
    unsafe_code,
    reason = "a system call that fills arrays of C structures"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use aya::Pod;

/// `enum bpf_cmd` of include/uapi/linux/bpf.h.
const LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;

/// `struct { ... } batch` of `union bpf_attr` in the same file.
#[derive(Debug)]
#[repr(C)]
struct Attributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// Where the next batch begins; None for the first.
pub(super) type Position = Option<u32>;

/// What one call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Elements at the beginning of the arrays.
    pub count: usize,
    /// Where to go on; None after the last.
    pub(crate) next: Position,
}

/// Takes elements out of a hash map, from `position` on, as many as both arrays hold.
///
/// # Errors
///
/// That of the system call: EINVAL where the kernel does not know it.
pub(super) fn take<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    position: Position,
    keys: &mut [K],
    values: &mut [V],
) -> io::Result<Taken> {
    let mut begin = position.unwrap_or_default();
    let mut next = 0_u32;
    let room = keys.len().min(values.len());
    let mut attributes = Attributes {
        in_batch: position.map_or(0, |_| &raw mut begin as u64),
        out_batch: &raw mut next as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
        count: u32::try_from(room).unwrap_or(u32::MAX),
        map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel writes at most `count` keys and values, which are plain data of
    // the sizes that the map was made with (the caller's types are the contract's), and
    // one u32; all of them outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            LOOKUP_AND_DELETE_BATCH,
            &raw mut attributes,
            size_of::<Attributes>(),
        )
    };
    let next = match result {
        0 => Some(next),
        _ => match io::Error::last_os_error() {
            // The last batch, which may have elements.
            error if error.raw_os_error() == Some(libc::ENOENT) => None,
            error => return Err(error),
        },
    };
    let count = usize::try_from(attributes.count).unwrap_or(usize::MAX);
    Ok(Taken {
        count: count.min(room),
        next,
    })
}
