//! Images without their kernel side.
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

use std::fs::File;

use super::*;
use crate::danger::Harm;
use tlsprof_common::Device;

const LIBSSL: ImageId = ImageId {
    device: Device { major: 8, minor: 1 },
    inode: 7,
};

fn registry(state: State) -> Registry {
    let image = Image {
        path: "/lib/libssl.so.3".into(),
        build_id: String::new(),
        library: None,
        plan: None,
        state,
        file: OpenImage {
            file: File::open("/dev/null").unwrap(),
        },
        links: BTreeMap::new(),
    };
    let mut registry = Registry::new();
    registry.keep(
        LIBSSL,
        Inspected {
            switches_stacks: false,
            image: Some(image),
        },
    );
    registry
}

fn coroutines() -> Danger {
    Danger {
        process: 4711,
        name: "coroutines".to_owned(),
        harm: Harm::SwitchesStacks,
    }
}

/// Only then can a thread be in a call whose end is not seen any more.
#[test]
fn refusing_an_image_says_whether_it_had_probes() {
    let mut profiled = registry(State::Profiled);
    assert!(profiled.refuse(LIBSSL, coroutines()));
    assert_eq!(profiled.probed(), BTreeSet::new());
    assert!(!profiled.refuse(LIBSSL, coroutines()));
    assert!(!registry(State::Found).refuse(LIBSSL, coroutines()));
    assert!(!Registry::new().refuse(LIBSSL, coroutines()));
}
