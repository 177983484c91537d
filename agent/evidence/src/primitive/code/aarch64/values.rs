//! Tracks register values from one instruction to the next: AArch64 takes several instructions for a constant, an address or
//! a multiple of a value. Follows the order in memory, not branches.

use std::collections::BTreeMap;

use super::operation::Register;

/// Registers that a callee may change (Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1).
const CHANGED: std::ops::RangeInclusive<u32> = 0..=18;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    Number(i64),
    /// Address of a 4 KiB page.
    Page(u64),
    Address(u64),
}

/// `times` the value with number `of`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Multiple {
    of: u32,
    times: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    value: Value,
    multiple: Multiple,
}

#[derive(Debug)]
pub(super) struct Values {
    registers: [Known; 32],
    /// Number of the newest value.
    given: u32,
    /// Addresses computed, and whether code accessed memory at an offset from them: compilers address several objects
    /// relative to one anchor, which may be an unrelated object itself.
    made: BTreeMap<u64, bool>,
}

impl Default for Values {
    /// Each register starts with a value of its own.
    fn default() -> Self {
        let mut values = Self {
            registers: [Known::default(); 32],
            given: 0,
            made: BTreeMap::new(),
        };
        (0..31).for_each(|register| values.forget(register));
        values
    }
}

impl Values {
    fn get(&self, register: Register) -> Known {
        let known = self
            .registers
            .get(usize::try_from(register).unwrap_or(usize::MAX));
        known.copied().unwrap_or_default()
    }

    fn put(&mut self, register: Register, known: Known) {
        // Register 31 is the zero register or the stack pointer.
        let at = usize::try_from(register).unwrap_or(usize::MAX);
        if let Some(place) = self.registers.get_mut(at).filter(|_| at < 31) {
            *place = known;
        }
    }

    pub(super) fn set(&mut self, register: Register, value: Value) {
        self.given = self.given.wrapping_add(1);
        let multiple = Multiple {
            of: self.given,
            times: 1,
        };
        self.put(register, Known { value, multiple });
    }

    pub(super) fn forget(&mut self, register: Register) {
        self.set(register, Value::Unknown);
    }

    pub(super) fn forget_at_call(&mut self) {
        CHANGED.for_each(|register| self.forget(register));
    }

    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.put(to, self.get(from));
    }

    pub(super) fn number(&self, register: Register) -> Option<i64> {
        match self.get(register).value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn set_address(&mut self, to: Register, address: u64, is_page: bool) {
        if !is_page {
            self.made.entry(address).or_default();
        }
        self.set(
            to,
            if is_page {
                Value::Page(address)
            } else {
                Value::Address(address)
            },
        );
    }

    /// Replaces 16 bits; returns the number if all of it is known.
    pub(super) fn insert(&mut self, register: Register, bits: u64, shift: u32) -> Option<i64> {
        let number = self.number(register);
        let number = number.map(|number| {
            let others = number.cast_unsigned() & !(0xffff << shift);
            (others | (bits << shift)).cast_signed()
        });
        self.set(register, number.map_or(Value::Unknown, Value::Number));
        number
    }

    pub(super) fn add(&mut self, to: Register, from: Register, number: i64) {
        match self.get(from).value {
            Value::Page(page) => self.set_address(to, page.wrapping_add_signed(number), false),
            Value::Address(address) => {
                self.made.insert(address, true);
                self.set_address(to, address.wrapping_add_signed(number), false);
            }
            Value::Number(one) => self.set(to, Value::Number(one.wrapping_add(number))),
            Value::Unknown => self.forget(to),
        }
    }

    /// Address at an offset from a base register, if known.
    pub(super) fn refer(&mut self, base: Register, offset: i64) -> Option<u64> {
        match self.get(base).value {
            Value::Page(page) => Some(page.wrapping_add_signed(offset)),
            Value::Address(address) => {
                if offset != 0 {
                    self.made.insert(address, true);
                }
                Some(address.wrapping_add_signed(offset))
            }
            _ => None,
        }
    }

    /// The register as a multiple of another value.
    pub(super) fn times(&self, register: Register) -> i64 {
        self.get(register).multiple.times
    }

    /// Sum or difference of two registers; `left`: left shift of the second, None for other shifts.
    pub(super) fn sum(
        &mut self,
        to: Register,
        (from, other): (Register, Register),
        left: Option<u32>,
        subtracts: bool,
    ) {
        let (one, other) = (self.get(from).multiple, self.get(other).multiple);
        let second = left.and_then(|left| other.times.checked_mul(1_i64.checked_shl(left)?));
        let times = second.and_then(|second| match subtracts {
            true => one.times.checked_sub(second),
            false => one.times.checked_add(second),
        });
        let times = times.filter(|_| one.of == other.of);
        self.put_multiple(to, one.of, times);
    }

    /// Product of a register and a constant.
    pub(super) fn multiply(&mut self, to: Register, from: Register, number: i64) {
        let one = self.get(from).multiple;
        self.put_multiple(to, one.of, one.times.checked_mul(number));
    }

    /// Left shift of a register.
    pub(super) fn shift(&mut self, to: Register, from: Register, left: u32) {
        match 1_i64.checked_shl(left) {
            Some(number) => self.multiply(to, from, number),
            None => self.forget(to),
        }
    }

    /// The zero register has no multiples.
    fn put_multiple(&mut self, to: Register, of: u32, times: Option<i64>) {
        match times {
            Some(times) if of != 0 => self.put(
                to,
                Known {
                    value: Value::Unknown,
                    multiple: Multiple { of, times },
                },
            ),
            _ => self.forget(to),
        }
    }

    /// Computed addresses, without anchors.
    pub(super) fn references(&self) -> impl Iterator<Item = u64> {
        let made = self.made.iter().filter(|(_, leads)| !**leads);
        made.map(|(address, _)| *address)
    }
}
