//! Which image an address in a process belongs to.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::image::Mapping;

/// Libraries that do nothing but TLS and its cryptography, by the beginnings of their
/// file names. What follows is a version, or a hash in a Python wheel:
/// `libssl.so.3`, `libcrypto-0a1b.so.1.1`, `libgsk8ssl_64.so`.
const TLS_LIBRARIES: [&[u8]; 14] = [
    // OpenSSL and its relatives.
    b"libssl.",
    b"libssl-",
    b"libcrypto.",
    b"libcrypto-",
    b"libnetty_tcnative",
    b"libconscrypt_",
    // GnuTLS.
    b"libgnutls.",
    b"libnettle.",
    b"libhogweed.",
    // NSS.
    b"libssl3.",
    b"libsoftokn3.",
    b"libfreebl",
    // IBM GSKit, in Domino up to 10.
    b"libgsk8ssl",
    b"libgsk8iccs",
];

pub(super) fn is_tls_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    TLS_LIBRARIES.iter().any(|begin| name.starts_with(begin))
}

/// Dynamic loaders by the beginnings of their file names: glibc's, by architecture
/// (`ld-linux-x86-64.so.2`) and version (`ld-2.31.so`), and musl's.
const LOADERS: [&[u8]; 5] = [b"ld-linux", b"ld-2.", b"ld64.so", b"ld.so", b"ld-musl-"];

pub(super) fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    LOADERS.iter().any(|begin| name.starts_with(begin))
}

/// Code of a process that is worth knowing when it has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownCode {
    pub(super) tls: Box<[Range<u64>]>,
    pub(super) loader: Box<[Range<u64>]>,
}

impl KnownCode {
    /// Where code of TLS libraries and of the loader lies.
    pub(super) fn of(images: &[Mapping]) -> Self {
        let lies = |is: fn(&Path) -> bool| {
            let those = images.iter().filter(|image| is(&image.path));
            those.map(|image| image.start..image.end).collect()
        };
        Self {
            tls: lies(is_tls_library),
            loader: lies(is_loader),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_name() {
        let known = [
            "/usr/lib/x86_64-linux-gnu/libssl.so.3",
            "/usr/lib/libcrypto.so.1.1",
            "/venv/cryptography.libs/libcrypto-0a1b2c3d.so.1.1",
            "/usr/lib/libgnutls.so.30.34.3",
            "/usr/lib/libfreeblpriv3.so",
            "/tmp/libnetty_tcnative_linux_x86_64123.so",
        ];
        for path in known {
            assert!(is_tls_library(Path::new(path)), "{path}");
        }
        let others = [
            "/usr/sbin/nginx",
            "/usr/lib/libcryptsetup.so.12",
            "/usr/lib/libc.so.6",
            "/libssl.so.3/app",
            "/",
            "",
        ];
        for path in others {
            assert!(!is_tls_library(Path::new(path)), "{path}");
        }
    }
}
