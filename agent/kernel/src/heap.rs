//! Memory that is no longer used goes back to the kernel.
#![allow(unsafe_code, reason = "a function of the C library")]

/// Gives free memory of the heap back. The kernel's types, parsed, take 20 MB while programs are loaded,
/// of which glibc would keep most (malloc_trim(3)). Other C libraries give it back themselves.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number of bytes to keep, and what is in use stays as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}
