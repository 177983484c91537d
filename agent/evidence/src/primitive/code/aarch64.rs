//! Facts about a function from AArch64 instructions.
//!
//! Compares encodings, like `fingerprint/aarch64.rs`: the rules need the operands of twenty kinds of instructions, and a
//! complete decoder is thousands of lines of tables.

mod decode;
mod operation;
mod step;
mod values;

use super::signs::{MAX_INSTRUCTIONS, Signs};
use super::step::{Flow, Shift};
use decode::decode;
use operation::{Access, CARRY, Operation, Product, Register};
use values::{Value, Values};

/// Reads code at an address.
pub(super) fn signs(code: &[u8], address: u64) -> Signs {
    let mut reader = Reader::default();
    let end = address.saturating_add(code.len() as u64);
    reader.signs.end = address;
    for (at, word, operation) in operations(code, address) {
        reader.note(&operation);
        let mut step = step::step(&operation, at);
        step.asks_for_overflow = reader.asks_for_overflow(&operation);
        if let Operation::Set { to, .. } | Operation::Insert { to, .. } = operation {
            // Instructions for 32 bits extend them with zeros.
            let bits = u64::MAX >> if word >> 31 == 0 { 32 } else { 0 };
            let number = reader.values.number(to);
            step.number = number.map(|number| number.cast_unsigned() & bits);
        }
        reader.signs.end = at.wrapping_add(4);
        if !reader.signs.take(step, (address, end)) {
            break;
        }
    }
    reader
        .values
        .references()
        .for_each(|at| reader.signs.note_reference(at));
    reader.signs
}

/// Addresses of instructions, and where they lead.
pub(super) fn flows(code: &[u8], address: u64) -> impl Iterator<Item = (u64, Flow)> {
    let operations = operations(code, address).take(MAX_INSTRUCTIONS);
    operations.map(|(at, _, one)| (at, step::flow(&one)))
}

/// Up to the first word that is no instruction.
fn operations(code: &[u8], address: u64) -> impl Iterator<Item = (u64, u32, Operation)> {
    let places = (0..).map(move |at: u64| address.wrapping_add(4 * at));
    let words = places.zip(code.as_chunks::<4>().0);
    let operations = words.map(|(at, word)| {
        let word = u32::from_le_bytes(*word);
        (at, word, decode(word, at))
    });
    operations.take_while(|(_, _, one)| *one != Operation::Data)
}

#[derive(Default)]
struct Reader {
    signs: Signs,
    values: Values,
    /// Destination of the last UMULH.
    upper: Option<Register>,
}

impl Reader {
    /// There is no flag for it: compilers compare the upper half of the product with zero.
    fn asks_for_overflow(&mut self, one: &Operation) -> bool {
        if let Operation::Multiply {
            to,
            product: Product::Upper,
            ..
        } = *one
        {
            self.upper = Some(to);
        }
        let compared = step::compared_with_zero(one);
        compared.is_some() && compared == self.upper
    }

    fn note(&mut self, one: &Operation) {
        let (signs, values) = (&mut self.signs, &mut self.values);
        match *one {
            Operation::Address {
                to,
                address,
                is_page,
            } => values.set_address(to, address, is_page),
            Operation::AddNumber {
                to, from, number, ..
            } => {
                signs.note_number(number);
                values.add(to, from, number);
            }
            Operation::Set { to, number } => {
                signs.note_number(number);
                values.set(to, Value::Number(number));
            }
            Operation::Insert { to, number, shift } => {
                if let Some(number) = values.insert(to, number, shift) {
                    signs.note_number(number);
                }
            }
            Operation::And { to, mask, .. } => {
                if mask & mask.wrapping_add(1) == 0 {
                    signs.note_cut(mask.count_ones());
                }
                values.forget(to);
            }
            Operation::Cut {
                to,
                from,
                first,
                last,
                size,
            } => self.note_cut(to, from, (first, last, size)),
            Operation::Extract { to, by } => {
                signs.note_shift(Shift::Double(by));
                values.forget(to);
            }
            Operation::Add {
                to,
                from,
                other,
                by,
                subtracts,
                ..
            } => {
                let left = match by {
                    Some(Shift::Left(by)) => Some(by),
                    _ => None,
                };
                by.into_iter().for_each(|by| signs.note_shift(by));
                values.sum(to, (from, other), left, subtracts);
            }
            _ => self.note_rest(one),
        }
    }

    fn note_rest(&mut self, one: &Operation) {
        let (signs, values) = (&mut self.signs, &mut self.values);
        match *one {
            Operation::Logic { to, by, copied, .. } => {
                by.into_iter().for_each(|by| signs.note_shift(by));
                match copied {
                    Some(from) => values.copy(to, from),
                    None => values.forget(to),
                }
            }
            Operation::AddCarry { to, is_long, .. } => {
                signs.carried += usize::from(is_long);
                values.forget(to);
            }
            Operation::Select {
                to: Some(to),
                from,
                other,
                condition,
                is_increment,
            } => {
                // CINC on carry compiles the same sum as ADC with zero.
                let adds = is_increment && from == other && from != 31;
                signs.carried += usize::from(adds && CARRY.contains(&condition));
                values.forget(to);
            }
            Operation::Multiply {
                to,
                from,
                other,
                product,
            } => self.note_product(to, (from, other), product),
            Operation::Access(access) => self.note_access(&access),
            Operation::Literal { to, address } => {
                signs.note_reference(address);
                to.into_iter().for_each(|to| values.forget(to));
            }
            Operation::Flow(Flow::Call(_)) => values.forget_at_call(),
            Operation::Other(to) => to.into_iter().for_each(|to| values.forget(to)),
            _ => {}
        }
    }

    fn note_product(&mut self, to: u32, (from, other): (u32, u32), product: Product) {
        let (signs, values) = (&mut self.signs, &mut self.values);
        let numbers = [from, other].map(|one| values.number(one));
        numbers
            .into_iter()
            .flatten()
            .for_each(|one| signs.note_factor(one));
        // Only a product of 19x counts: 19x may be an intermediate step of another constant factor.
        let by_19 = [from, other].map(|one| values.times(one) == 19);
        if product != Product::Short {
            signs.by_19 += usize::from(by_19 != [false; 2]);
            signs.short += usize::from(product != Product::Upper);
        }
        match (product, numbers) {
            (Product::Long, [Some(number), None]) => values.multiply(to, other, number),
            (Product::Long, [None, Some(number)]) => values.multiply(to, from, number),
            _ => values.forget(to),
        }
    }

    /// Counts shifts and bit-field extracts.
    fn note_cut(&mut self, to: u32, from: u32, (first, last, size): (u32, u32, u32)) {
        let left = size.wrapping_sub(first) % size;
        let (signs, values) = (&mut self.signs, &mut self.values);
        if last == size - 1 {
            signs.note_shift(Shift::Right(first));
        } else if first == last + 1 {
            signs.note_shift(Shift::Left(left));
            return values.shift(to, from, left);
        } else if first <= last {
            signs.note_shift(Shift::Right(first));
            signs.note_cut(last - first + 1);
        } else {
            signs.note_shift(Shift::Left(left));
            signs.note_cut(last + 1);
        }
        values.forget(to);
    }

    fn note_access(&mut self, access: &Access) {
        if access.index.is_none()
            && let Some(address) = self.values.refer(access.base, access.offset)
        {
            self.signs.note_reference(address);
        }
        if access.advances {
            self.values.forget(access.base);
        }
        if !access.is_store {
            let loaded = access.registers.into_iter().flatten();
            loaded.for_each(|one| self.values.forget(one));
        }
    }
}
