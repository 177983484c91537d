//! What aya does not offer of the kernel's type information (BTF,
//! Documentation/bpf/btf.rst): how many parameters a function has, and whether bytes are
//! such information at all. Pure.

use thiserror::Error;

const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
const HEADER: usize = 24;
const STRUCTURE: u32 = 4;
const FUNCTION: u32 = 12;

/// What is wrong with a file, as the end of a sentence about it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Unfit {
    /// Something else.
    #[error("is not type information (BTF)")]
    NoBtf,
    /// An ELF file, as `vmlinux` is.
    #[error("is an ELF file: extract its section (objcopy -O binary --only-section=.BTF)")]
    Elf,
    /// Of another kind of machine.
    #[error("has the wrong byte order: it is from another kind of machine")]
    OtherByteOrder,
    /// A format of the future.
    #[error("is type information (BTF) of version {0}, which tlsprof does not know")]
    Version(u8),
    /// The end is missing.
    #[error("is truncated: it has {has} of {needs} bytes")]
    Truncated {
        /// Bytes that are there.
        has: usize,
        /// Bytes that there should be.
        needs: usize,
    },
    /// Longer than that of any kernel.
    #[error("is longer than the type information of any kernel")]
    TooLong,
    /// It cannot be read to the end.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// A module's, or a BPF program's.
    #[error("does not describe a kernel: it has no struct task_struct")]
    NoKernel,
    /// It has functions that the running kernel lacks.
    #[error(
        "is of another kernel: the running one lacks {unknown} of its {all} functions, such as \
         {example}"
    )]
    AnotherKernel {
        /// One of those.
        example: String,
        /// How many.
        unknown: u32,
        /// Of how many.
        all: u32,
    },
}

/// Whether `bytes` describe a kernel of this machine's kind, wholly.
pub(super) fn check(bytes: &[u8]) -> Result<(), Unfit> {
    let magic = bytes.first_chunk().ok_or(Unfit::NoBtf)?;
    match u16::from_ne_bytes(*magic) {
        MAGIC => {}
        magic if magic == MAGIC.swap_bytes() => return Err(Unfit::OtherByteOrder),
        _ if bytes.starts_with(b"\x7fELF") => return Err(Unfit::Elf),
        _ => return Err(Unfit::NoBtf),
    }
    match bytes.get(2) {
        Some(&VERSION) | None => {}
        Some(version) => return Err(Unfit::Version(*version)),
    }
    let has = bytes.len();
    let needs = length(bytes).unwrap_or(HEADER);
    if needs > has {
        return Err(Unfit::Truncated { has, needs });
    }
    let damaged = |what: &str| Unfit::Damaged(what.to_owned());
    let (types, names) = sections(bytes).ok_or_else(|| damaged("its header is invalid"))?;
    let whole: usize = all(types).filter_map(|one| size(&one)).sum();
    if whole != types.len() {
        return Err(damaged("a type has an unknown kind or is truncated"));
    }
    if names.last() != Some(&0) {
        return Err(damaged("a name has no end"));
    }
    let is_task = |one: &Type| {
        one.kind == STRUCTURE && name_at(names, one.name) == Some(b"task_struct".as_slice())
    };
    if all(types).any(|one| is_task(&one)) {
        Ok(())
    } else {
        Err(Unfit::NoKernel)
    }
}

/// Names of all functions.
pub(super) fn functions(btf: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (types, names) = sections(btf).unwrap_or_default();
    let functions = all(types).filter(|one| one.kind == FUNCTION);
    functions.filter_map(|one| name_at(names, one.name))
}

/// One type as it lies in the file.
struct Type {
    name: usize,
    kind: u32,
    /// Members, parameters or values.
    count: u32,
    /// The size, or the type that this one is about.
    about: u32,
}

/// How many parameters the function has, by the type information in `btf`, in the
/// byte order of this machine. None where it is not there or cannot be read.
pub(super) fn parameters(btf: &[u8], function: &str) -> Option<u32> {
    let (types, names) = sections(btf)?;
    let prototype = all(types)
        .find(|one| one.kind == FUNCTION && name_at(names, one.name) == Some(function.as_bytes()))?
        .about;
    // Numbers of types begin with 1; 0 is void.
    let index = usize::try_from(prototype.checked_sub(1)?).ok()?;
    Some(all(types).nth(index)?.count)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

/// Bytes that the header speaks of.
fn length(btf: &[u8]) -> Option<usize> {
    let field = |at| usize::try_from(number(btf, at)?).ok();
    let types = field(8)?.checked_add(field(12)?)?;
    let names = field(16)?.checked_add(field(20)?)?;
    field(4)?.checked_add(types.max(names))
}

fn sections(btf: &[u8]) -> Option<(&[u8], &[u8])> {
    let magic = u16::from_ne_bytes(btf.get(..2)?.try_into().ok()?);
    let field = |at| number(btf, at).and_then(|value| usize::try_from(value).ok());
    let header = field(4).filter(|header| magic == MAGIC && *header >= HEADER)?;
    let section = |offset: usize, length: usize| btf.get(header + offset..)?.get(..length);
    Some((
        section(field(8)?, field(12)?)?,
        section(field(16)?, field(20)?)?,
    ))
}

fn name_at(names: &[u8], at: usize) -> Option<&[u8]> {
    names.get(at..)?.split(|byte| *byte == 0).next()
}

/// All types, up to the first that is of no known kind.
fn all(types: &[u8]) -> impl Iterator<Item = Type> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let info = number(types, at + 4)?;
        let one = Type {
            name: usize::try_from(number(types, at)?).ok()?,
            kind: info >> 24 & 0x1f,
            count: info & 0xffff,
            about: number(types, at + 8)?,
        };
        at += size(&one)?;
        Some(one)
    })
}

/// Bytes of a type.
fn size(one: &Type) -> Option<usize> {
    Some(12 + usize::try_from(tail(one)?).ok()?)
}

/// Bytes that follow a type, by its kind.
const fn tail(one: &Type) -> Option<u32> {
    match one.kind {
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => Some(4),
        // Pointers, forward declarations, typedefs, volatile, const, restrict,
        // functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => Some(0),
        // Arrays.
        3 => Some(12),
        // Structures, unions, sections, 64-bit enumerations.
        4 | 5 | 15 | 19 => Some(12 * one.count),
        // Enumerations, function prototypes.
        6 | 13 => Some(8 * one.count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[u8] = b"\0int\0tcp_recvmsg\0other\0";

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// An integer, a prototype with four parameters, a function of it.
    fn example(kind_of_first: u32) -> Vec<u8> {
        let types = words(
            &[
                [1, kind_of_first << 24, 4, 32].as_slice(),
                &[0, 13 << 24 | 4, 1, 0, 1, 0, 1, 0, 1, 0, 1],
                &[5, 12 << 24, 2],
            ]
            .concat(),
        );
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or_default();
        let mut btf = words(&[u32::from(MAGIC) | 1 << 16, 24]);
        btf.extend(words(&[0, length(&types), length(&types), length(NAMES)]));
        btf.extend(types);
        btf.extend(NAMES);
        btf
    }

    #[test]
    fn parameters_are_those_of_the_prototype() {
        let btf = example(1);
        assert_eq!(parameters(&btf, "tcp_recvmsg"), Some(4));
        assert_eq!(parameters(&btf, "tcp_recv"), None);
        assert_eq!(parameters(&btf, "int"), None);
    }

    #[test]
    fn what_is_no_type_information_has_no_functions() {
        assert_eq!(parameters(&[], "tcp_recvmsg"), None);
        assert_eq!(parameters(&[0; 64], "tcp_recvmsg"), None);
        assert_eq!(parameters(&example(31), "tcp_recvmsg"), None);
        let whole = example(1);
        for end in 0..whole.len() - 7 {
            let cut = whole.get(..end).unwrap_or_default();
            assert_eq!(parameters(cut, "tcp_recvmsg"), None, "{end}");
        }
    }

    /// The example with a name, and a structure of it at the end.
    fn kernel() -> Vec<u8> {
        let mut btf = example(1);
        let types_end = btf.len() - NAMES.len();
        let name = u32::try_from(NAMES.len()).unwrap_or_default();
        let structure = words(&[name, STRUCTURE << 24, 8]);
        btf.splice(types_end..types_end, structure);
        btf.extend(b"task_struct\0");
        for (at, more) in [(12, 12), (16, 12), (20, 12)] {
            let value = number(&btf, at).unwrap_or_default() + more;
            btf.splice(at..at + 4, value.to_ne_bytes());
        }
        btf
    }

    #[test]
    fn a_kernel_is_told_from_what_is_none() {
        assert_eq!(check(&kernel()), Ok(()));
        assert_eq!(functions(&kernel()).collect::<Vec<_>>(), [b"tcp_recvmsg"]);
        assert_eq!(check(&example(1)), Err(Unfit::NoKernel));
        assert_eq!(check(b""), Err(Unfit::NoBtf));
        assert_eq!(check(b"no types at all"), Err(Unfit::NoBtf));
        assert_eq!(check(b"\x7fELF and more"), Err(Unfit::Elf));
        let swapped: Vec<u8> = kernel()
            .chunks(2)
            .flat_map(|two| two.iter().rev().copied().collect::<Vec<_>>())
            .collect();
        assert_eq!(check(&swapped), Err(Unfit::OtherByteOrder));
        let mut later = kernel();
        later.splice(2..3, [2]);
        assert_eq!(check(&later), Err(Unfit::Version(2)));
        let mut unknown = kernel();
        unknown.splice(28..32, (31_u32 << 24).to_ne_bytes());
        assert!(matches!(check(&unknown), Err(Unfit::Damaged(_))));
    }

    #[test]
    fn each_truncation_is_reported_as_one() {
        let whole = kernel();
        for end in 2..whole.len() {
            let cut = whole.get(..end).unwrap_or_default();
            assert!(matches!(check(cut), Err(Unfit::Truncated { .. })), "{end}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut btf = example(1);
            btf.truncate(24);
            btf.extend(bytes);
            let _ = parameters(&btf, "tcp_recvmsg");
            let _ = functions(&btf).count();
            if check(&btf).is_ok() {
                let _ = aya::Btf::parse(&btf, aya::Endianness::default());
            }
        }
    }
}
