//! The unwind tables of an image: where its functions begin and end, who calls them. Memory is bounded by
//! `-rss_limit_mb`, and by what the input could hold.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tlsprof_discover::elf::{Around, Bounds, ElfView};

/// The shortest record of a function.
const RECORD: usize = 16;

fuzz_target!(|input: &[u8]| {
    let Ok(image) = ElfView::new(Box::new(input.to_vec())) else {
        return;
    };
    let all = image.all_function_bounds().unwrap_or_default();
    assert!(all.len() <= input.len() / RECORD);
    assert!(all.is_sorted() && all.iter().all(|(first, end)| first < end));
    let edges = all.iter().take(64).flat_map(|(first, end)| [*first, end - 1, *end]);
    let addresses: Vec<u64> = edges.chain([0, u64::MAX]).collect();
    let rules = image.frame_rules(&addresses).unwrap_or_default();
    assert!(rules.keys().all(|address| addresses.contains(address)));
    let calls = image.calls(&addresses).unwrap_or_default();
    assert!(calls.keys().all(|address| addresses.contains(address)));
    let Ok(around) = image.functions_around(&addresses) else {
        return;
    };
    assert_eq!(around.len(), addresses.len());
    for (address, around) in addresses.into_iter().zip(around) {
        let (Around::Function(bounds) | Around::Gap(bounds)) = around;
        assert!(holds(bounds, address), "{around:x?} is not around {address:x}");
        let (first, end) = bounds;
        let size = usize::try_from(end - first).unwrap_or(usize::MAX);
        assert!(image.constants(first, size).len() <= input.len());
        let _ = image.code(first, end - first);
    }
});

/// The last address has no end after it.
fn holds((first, end): Bounds, address: u64) -> bool {
    first <= address && (address < end || address == u64::MAX)
}
