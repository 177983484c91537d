//! What samples were called for, by the libraries that are installed.

use super::*;
use crate::session::primitives::calls::Calls;
use tlsprof_common::frame::{Base, CallersFrame, FrameRule};
use tlsprof_evidence::callers::Word;

const STACK: u64 = 0x7000;

/// A sample of code in libcrypto whose caller returns to a function of libssl, there.
fn called_at(images: &mut Images, (ssl, crypto): (ImageId, ImageId), returns: u64) -> Option<Step> {
    let file = |name| File::open(installed(name)).unwrap();
    // In an image that is mapped from its beginning on.
    let view = ElfView::open(file("libcrypto.so.3")).unwrap();
    let symbols = view.symbols(&["EVP_PKEY_derive"]).unwrap();
    let offset = view
        .file_offset(symbols.get("EVP_PKEY_derive").unwrap().address)
        .unwrap();
    let stack = UserStack {
        pointer: STACK,
        words: vec![Word {
            at: STACK,
            value: returns,
        }],
        ..UserStack::default()
    };
    // Of a function that has no name: the innermost one would say it.
    let leaf = Place {
        image: crypto,
        offset: offset.saturating_sub(1),
    };
    let calls = Calls::of(&stack, (1, leaf), |offset| {
        Some(Place { image: ssl, offset })
    });
    let rule = FrameRule {
        base: Base::Stack,
        offset: 8,
        return_address: Some(-8),
        frame_pointer: CallersFrame::Kept,
    };
    let known = lookup::Site {
        rule: Some(rule),
        ..lookup::Site::default()
    };
    images.learn(crypto, site(leaf.offset, known));
    let place = [returns - 1];
    let found = lookup::look_into(file("libssl.so.3"), &place, &place, false).unwrap();
    images.learn(ssl, found);
    calls.step(images)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_step_is_told_by_what_a_caller_called() {
    let view = ElfView::open(File::open(installed("libssl.so.3")).unwrap()).unwrap();
    let mut returns = Vec::new();
    for (first, end) in view.all_function_bounds().unwrap() {
        let code = view.code(first, end - first).unwrap();
        let calls = code.iter().zip(first..).filter(|(byte, _)| **byte == 0xe8);
        returns.extend(calls.map(|(_, at)| at + 5));
    }
    let calls = view.calls(&returns).unwrap();
    let behind = |name: &str| {
        let mut calls = calls.iter();
        let call = calls.find(|(_, call)| call.name.as_deref() == Some(name));
        view.file_offset(*call.unwrap().0).unwrap()
    };
    let device = Device { major: 8, minor: 1 };
    let [ssl, crypto] = [7, 8].map(|inode| ImageId { device, inode });
    let mut images = Images::default();
    for image in [ssl, crypto] {
        assert!(images.touch(image, || Ok(File::open("/proc/self/exe").unwrap())));
    }
    for (name, step) in [
        ("EVP_PKEY_derive", Some(Step::KeyExchange)),
        ("EVP_DigestSign", Some(Step::Signing)),
        ("EVP_PKEY_get_id", None),
    ] {
        let found = called_at(&mut images, (ssl, crypto), behind(name));
        assert_eq!(found, step, "{name}");
    }
}
