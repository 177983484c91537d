//! Images that cannot be opened.

use std::path::PathBuf;

use super::*;
use tlsprof_discover::image::OpenError;

/// How often it is tried to open an image that is hit in each of ten bookings, many times.
fn tries(error: impl Fn() -> OpenError) -> usize {
    let device = Device { major: 8, minor: 1 };
    let image = ImageId { device, inode: 7 };
    let mut images = Images::default();
    let mut tries = 0;
    for _ in 0..10 {
        for _ in 0..500 {
            let opened = images.touch(image, || {
                tries += 1;
                Err(error())
            });
            assert!(!opened);
        }
        images.forget_unused();
    }
    tries
}

#[test]
fn an_image_that_cannot_be_opened_is_not_tried_at_each_sample() {
    let path = || PathBuf::from("/lib/libcrypto.so.3 (deleted)");
    let replaced = || OpenError::Replaced {
        pid: 7,
        path: path(),
        source: std::io::ErrorKind::PermissionDenied.into(),
    };
    assert_eq!(tries(replaced), 2);
    // Another process that maps it may be found soon.
    let gone = || OpenError::Gone {
        pid: 7,
        path: path(),
    };
    assert_eq!(tries(gone), 10);
}
