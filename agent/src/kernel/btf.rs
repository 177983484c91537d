//! What aya does not tell of the kernel's type information (BTF,
//! Documentation/bpf/btf.rst): how many parameters a function has. Pure.

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
const FUNCTION: u32 = 12;

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
        at += 12 + usize::try_from(tail(&one)?).ok()?;
        Some(one)
    })
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

    #[test]
    fn this_kernel_describes_its_functions() {
        if let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") {
            assert_eq!(parameters(&btf, "tcp_sendmsg"), Some(3));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut btf = example(1);
            btf.truncate(24);
            btf.extend(bytes);
            let _ = parameters(&btf, "tcp_recvmsg");
        }
    }
}
