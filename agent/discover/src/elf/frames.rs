//! Who called the function at an address: what the unwind tables, which `strip` leaves, say of its frame.

use std::collections::BTreeMap;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Encoding, EndianSlice, Expression, Format, LittleEndian,
    Operation, Register, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow, Vendor,
};

use super::{Arch, ElfError, ElfView};
use tlsprof_common::frame::{Base, CallersFrame, FrameRule};

/// Numbers of registers in unwind tables: System V ABI for AMD64, 3.6.2; DWARF for the Arm 64-bit Architecture, 4.1.
#[derive(Clone, Copy, Debug)]
struct Registers {
    stack: Register,
    frame: Register,
    return_address: Register,
}

const X86_64: Registers = Registers {
    stack: Register(7),
    frame: Register(6),
    return_address: Register(16),
};
const AARCH64: Registers = Registers {
    stack: Register(31),
    frame: Register(29),
    return_address: Register(30),
};

/// In bytes.
const ADDRESS_SIZE: u8 = 8;

type Section<'a> = EhFrame<EndianSlice<'a, LittleEndian>>;

impl ElfView {
    /// How the caller's state is restored at these addresses, as far as the tables say it in a form that is
    /// followed here: a frame at a distance from the stack or frame pointer, or from what was saved near these.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn frame_rules(&self, addresses: &[u64]) -> Result<BTreeMap<u64, FrameRule>, ElfError> {
        let Some(registers) = self.registers() else {
            return Ok(BTreeMap::new());
        };
        let Some(table) = self.unwind_table()? else {
            return Ok(BTreeMap::new());
        };
        let mut section = EhFrame::new(&table.bytes, LittleEndian);
        section.set_vendor(match self.arch() {
            Arch::Aarch64 => Vendor::AArch64,
            _ => Vendor::Default,
        });
        let bases = BaseAddresses::default().set_eh_frame(table.address);
        let mut context = UnwindContext::new();
        let records = table.records(|address| self.is_executable(address));
        let rules = addresses.iter().filter_map(|&address| {
            let after = records.partition_point(|((first, _), _)| *first <= address);
            let (_, at) = *records.get(after.checked_sub(1)?)?;
            let record = section.fde_from_offset(&bases, at.into(), EhFrame::cie_from_offset);
            let row = record.ok()?;
            let row = row.unwind_info_for_address(&section, &bases, &mut context, address);
            Some((address, rule(row.ok()?, &section, registers)?))
        });
        Ok(rules.collect())
    }

    fn registers(&self) -> Option<Registers> {
        match self.arch() {
            Arch::X86_64 => Some(X86_64),
            Arch::Aarch64 => Some(AARCH64),
            Arch::Other(_) => None,
        }
    }
}

/// "What was saved at this distance from the stack or frame pointer, and so much more": how frames are described that
/// were aligned.
fn saved(
    expression: Expression<EndianSlice<'_, LittleEndian>>,
    registers: Registers,
) -> Option<(Base, i64)> {
    let encoding = Encoding {
        address_size: ADDRESS_SIZE,
        format: Format::Dwarf32,
        version: 1,
    };
    let mut operations = expression.operations(encoding);
    let Operation::RegisterOffset {
        register, offset, ..
    } = operations.next().ok()??
    else {
        return None;
    };
    matches!(operations.next().ok()??, Operation::Deref { .. }).then_some(())?;
    let more = match operations.next().ok()? {
        None => 0,
        Some(Operation::PlusConstant { value }) => i64::try_from(value).ok()?,
        Some(_) => return None,
    };
    operations.next().ok()?.is_none().then_some(())?;
    match register {
        of if of == registers.stack => Some((Base::SavedAtStack(offset), more)),
        of if of == registers.frame => Some((Base::SavedAtFrame(offset), more)),
        _ => None,
    }
}

fn rule(
    row: &UnwindTableRow<usize>,
    section: &Section<'_>,
    registers: Registers,
) -> Option<FrameRule> {
    let (base, offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => match register {
            of if *of == registers.stack => (Base::Stack, *offset),
            of if *of == registers.frame => (Base::Frame, *offset),
            _ => return None,
        },
        CfaRule::Expression(expression) => saved(expression.get(section).ok()?, registers)?,
    };
    let return_address = match row.register(registers.return_address) {
        Some(RegisterRule::Offset(offset)) => Some(offset),
        None | Some(RegisterRule::SameValue) => None,
        Some(_) => return None,
    };
    let frame_pointer = match row.register(registers.frame) {
        Some(RegisterRule::Offset(offset)) => CallersFrame::Saved(offset),
        None | Some(RegisterRule::SameValue) => CallersFrame::Kept,
        Some(_) => CallersFrame::Lost,
    };
    Some(FrameRule {
        base,
        offset,
        return_address,
        frame_pointer,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs::File;

    use super::*;
    use crate::sample::installed;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn at_its_entry_a_function_returns_to_what_is_on_the_stack() {
        let image = ElfView::open(File::open(installed("libcrypto.so.3")).unwrap()).unwrap();
        let symbols = image.symbols(&["EVP_PKEY_derive"]).unwrap();
        let entry = symbols.get("EVP_PKEY_derive").unwrap().address;
        let rules = image.frame_rules(&[entry, 1]).unwrap();
        let expected = FrameRule {
            base: Base::Stack,
            offset: 8,
            return_address: Some(-8),
            frame_pointer: CallersFrame::Kept,
        };
        assert_eq!(rules, BTreeMap::from([(entry, expected)]));
    }

    /// As OpenSSL's assembly for Montgomery multiplication does.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn frames_that_assembly_has_aligned_are_found_by_the_pointer_that_it_saved() {
        let image = ElfView::open(File::open(installed("libcrypto.so.3")).unwrap()).unwrap();
        let bounds = image.all_function_bounds().unwrap();
        let middles: Vec<u64> = bounds
            .iter()
            .map(|(first, end)| first + (end - first) / 2)
            .collect();
        let rules = image.frame_rules(&middles).unwrap();
        let is_saved =
            |rule: &&FrameRule| matches!(rule.base, Base::SavedAtStack(_) | Base::SavedAtFrame(_));
        let saved = rules.values().filter(is_saved).count();
        assert!(
            saved > 0 && rules.len() * 10 > middles.len() * 9,
            "{saved} of {}",
            rules.len()
        );
    }

    #[test]
    fn hostile_tables_say_nothing() {
        let mut bytes = std::fs::read(installed("libssl.so.3")).unwrap();
        let image = ElfView::new(Box::new(bytes.clone())).unwrap();
        let table = image.section_named(&[b".eh_frame"]).unwrap().unwrap();
        let (offset, size) = (
            table.sh_offset.get(object::LittleEndian),
            table.sh_size.get(object::LittleEndian),
        );
        let bounds = image.all_function_bounds().unwrap();
        let middles: Vec<u64> = bounds
            .iter()
            .map(|(first, end)| first + (end - first) / 2)
            .collect();
        // Every third byte of what follows the head of each record.
        for at in (offset..offset + size).step_by(3) {
            if let Some(byte) = bytes.get_mut(usize::try_from(at).unwrap()) {
                *byte ^= 0x5a;
            }
        }
        let hostile = ElfView::new(Box::new(bytes)).unwrap();
        assert!(hostile.frame_rules(&middles).unwrap().len() < middles.len());
    }
}
