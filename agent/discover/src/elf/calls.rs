//! Where calls lead, by the instruction before the address that they return to.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions};
use object::LittleEndian as LE;
use object::elf::{self as format, Sym64};

use super::imports::jumped_through;
use super::{Arch, ElfError, ElfView};
use tlsprof_common::aarch64::relative_address;

/// Bytes of a call on x86-64: an opcode of one or two bytes, and a distance of four.
const NEAR: u64 = 5;
const THROUGH: u64 = 6;
const NEAR_OPCODE: [u8; 1] = [0xe8];
const THROUGH_OPCODE: [u8; 2] = [0xff, 0x15];
/// AArch64: `bl`.
const BL: u32 = 0x9400_0000;
const BL_MASK: u32 = 0xfc00_0000;
const BL_BITS: u32 = 26;
/// A stub has a mark for indirect branches at most, before its jump.
const STUB: u64 = 16;
const STUB_INSTRUCTIONS: usize = 2;

/// What a call leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Address in this image: a function, or the stub for one of another image.
    pub target: Option<u64>,
    /// Name of the function, where there is one.
    pub name: Option<String>,
}

enum Leads {
    To(u64),
    /// To what the loader puts there.
    Through(u64),
}

impl ElfView {
    /// The calls that return to these addresses, as far as their instructions say where they lead.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn calls(&self, addresses: &[u64]) -> Result<BTreeMap<u64, Call>, ElfError> {
        let calls = addresses
            .iter()
            .filter_map(|&address| Some((address, self.call_before(address)?)));
        let calls: Vec<(u64, Leads)> = calls.collect();
        let targets = calls.iter().filter_map(|(_, leads)| match leads {
            Leads::To(target) => Some(*target),
            Leads::Through(_) => None,
        });
        let targets: Vec<u64> = targets.collect();
        let names = self.names_at(&targets)?;
        let slots = calls.iter().map(|(_, leads)| self.slot(leads, &names));
        let slots: Vec<Option<u64>> = slots.collect();
        let imported = self.imported_through(&slots.iter().copied().flatten().collect())?;
        let calls = calls
            .into_iter()
            .zip(slots)
            .map(|((address, leads), slot)| {
                let imported = slot.and_then(|slot| imported.get(&slot).cloned());
                let call = match leads {
                    Leads::To(target) => Call {
                        target: Some(target),
                        name: imported.or_else(|| names.get(&target).cloned()),
                    },
                    Leads::Through(_) => Call {
                        target: None,
                        name: imported,
                    },
                };
                (address, call)
            });
        Ok(calls.collect())
    }

    fn call_before(&self, address: u64) -> Option<Leads> {
        match self.arch() {
            Arch::X86_64 => {
                let at = |distance: &[u8]| {
                    let distance = i32::from_le_bytes(*distance.first_chunk()?);
                    Some(address.wrapping_add_signed(distance.into()))
                };
                let near = self.code(address.checked_sub(NEAR)?, NEAR).ok()?;
                if let Some(distance) = near.strip_prefix(&NEAR_OPCODE) {
                    return at(distance).map(Leads::To);
                }
                let through = self.code(address.checked_sub(THROUGH)?, THROUGH).ok()?;
                at(through.strip_prefix(&THROUGH_OPCODE)?).map(Leads::Through)
            }
            Arch::Aarch64 => {
                let from = address.checked_sub(4)?;
                let word = u32::from_le_bytes(*self.code(from, 4).ok()?.first_chunk()?);
                let unused = u32::BITS - BL_BITS;
                let distance = (word << unused).cast_signed() >> (unused - 2);
                let target = from.wrapping_add_signed(i64::from(distance & !3));
                (word & BL_MASK == BL).then_some(Leads::To(target))
            }
            Arch::Other(_) => None,
        }
    }

    /// Where the loader puts the address of a function of another image.
    fn slot(&self, leads: &Leads, names: &BTreeMap<u64, String>) -> Option<u64> {
        let target = match leads {
            Leads::Through(slot) => return Some(*slot),
            Leads::To(target) => *target,
        };
        if names.contains_key(&target) {
            return None;
        }
        let code = self.code(target, STUB).ok()?;
        match self.arch() {
            Arch::X86_64 => {
                let decoder = Decoder::with_ip(64, &code, target, DecoderOptions::NONE);
                let mut stub = decoder.into_iter().take(STUB_INSTRUCTIONS);
                stub.find_map(|one| jumped_through(&one))
            }
            Arch::Aarch64 => loaded_by_stub(&code, target),
            Arch::Other(_) => None,
        }
    }

    /// The names of the functions of other images whose addresses the loader puts there.
    fn imported_through(&self, slots: &BTreeSet<u64>) -> Result<BTreeMap<u64, String>, ElfError> {
        let mut sections = self.sections.iter();
        let kind = format::SHT_DYNSYM;
        let Some(table) = sections.find(|section| section.sh_type.get(LE) == kind) else {
            return Ok(BTreeMap::new());
        };
        let strings = table.sh_link.get(LE) as usize;
        let dynamic = self.read_dynamic()?;
        let mut symbols = BTreeMap::new();
        for relocations in [dynamic.rela, dynamic.jump_slots] {
            self.each_rela(relocations, |entry| {
                let slot = entry.r_offset.get(LE);
                if slots.contains(&slot) {
                    symbols.insert(slot, u64::from(entry.r_sym(LE, false)));
                }
                Ok(())
            })?;
        }
        let names = symbols.into_iter().map(|(slot, index)| {
            let at = index.saturating_mul(size_of::<Sym64<LE>>() as u64);
            let at = table.sh_offset.get(LE).saturating_add(at);
            let symbol: Sym64<LE> = self.record("a symbol table", at)?;
            Ok((slot, self.symbol_name((strings, symbol.st_name.get(LE)))?))
        });
        names.collect()
    }
}

/// The slot of a stub on AArch64: `adrp x16, page; ldr x17, [x16, #offset]`.
fn loaded_by_stub(code: &[u8], address: u64) -> Option<u64> {
    let (words, _) = code.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let places = (address..).step_by(4);
    let is_page = |word: u32| word & 0x9f00_001f == 0x9000_0010;
    let (page, at) = words
        .by_ref()
        .zip(places)
        .find(|(word, _)| is_page(*word))?;
    let load = words
        .next()
        .filter(|word| word & 0xffc0_03ff == 0xf940_0211)?;
    let offset = u64::from(load >> 10 & 0xfff) * size_of::<u64>() as u64;
    Some(relative_address(page, at).wrapping_add(offset))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs::File;

    use super::super::fixture::{BASE, CODE, Fixture};
    use super::*;
    use crate::sample::installed;

    /// All that look like calls.
    fn named_calls(library: &str) -> BTreeMap<u64, Call> {
        let image = ElfView::open(File::open(installed(library)).unwrap()).unwrap();
        let mut returns = Vec::new();
        for (first, end) in image.all_function_bounds().unwrap() {
            let code = image.code(first, end - first).unwrap();
            let calls = code.iter().zip(first..).filter(|(byte, _)| **byte == 0xe8);
            returns.extend(calls.map(|(_, at)| at + NEAR));
        }
        image.calls(&returns).unwrap()
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn libssl_calls_functions_of_libcrypto_by_their_names() {
        let calls = named_calls("libssl.so.3");
        for name in ["EVP_PKEY_derive", "EVP_DigestSign", "EVP_DigestVerify"] {
            let mut calls = calls.values();
            let call = calls.find(|call| call.name.as_deref() == Some(name));
            assert!(call.unwrap().target.is_some(), "{name}");
        }
    }

    /// It may pass a stub, or not.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_call_within_an_image_is_named_too() {
        let calls = named_calls("libcrypto.so.3");
        let to = |name: &str| {
            let calls = calls.values();
            calls
                .filter(|call| call.name.as_deref() == Some(name))
                .count()
        };
        assert!(to("CRYPTO_malloc") > 100, "{}", to("CRYPTO_malloc"));
        assert_eq!(to("no_such_function"), 0);
    }

    /// Of Debian's libssl 3.0, and the same behind a mark for indirect branches.
    #[test]
    fn stubs_of_aarch64_load_from_a_slot() {
        let words = [0x9000_0490_u32, 0xf944_ba11, 0x9125_c210, 0xd61f_0220];
        let bytes =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|one| one.to_le_bytes()).collect() };
        let stub = bytes(&words);
        assert_eq!(loaded_by_stub(&stub, 0x1_efc4), Some(0xa_e970));
        let marked = [bytes(&[0xd503_245f]), stub].concat();
        assert_eq!(loaded_by_stub(&marked, 0x1_eff8), Some(0xa_e970));
        // A page before it: immhi -1, immlo 3.
        let back = bytes(&[0xf0ff_fff0, 0xf944_ba11]);
        assert_eq!(loaded_by_stub(&back, 0x1_efc4), Some(0x1_d970));
        let half = bytes(&[0x9000_0490]);
        assert_eq!(loaded_by_stub(&half, 0x1_efc4), None);
    }

    #[test]
    fn aarch64_calls_go_both_ways() {
        let at = BASE + CODE;
        // bl to 8 bytes before it, and 8 behind it.
        for (word, target) in [(0x97ff_fffe_u32, at - 8), (0x9400_0002, at + 8)] {
            let fixture = Fixture {
                code: word.to_le_bytes().to_vec(),
                machine: 183,
                ..Fixture::default()
            };
            let image = ElfView::new(Box::new(fixture.build())).unwrap();
            let calls = image.calls(&[at + 4]).unwrap();
            let call = calls.get(&(at + 4)).unwrap();
            assert_eq!(call.target, Some(target));
            // Another instruction.
            assert!(image.calls(&[at + 8]).unwrap().is_empty());
        }
    }
}
