//! From the name of a function to its primitive: `names.txt` is the table.

use std::sync::LazyLock;

use super::Primitive;

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| parse(include_str!("names.txt")));

/// What a name must be for a primitive.
#[derive(Debug)]
struct Rule {
    primitive: Primitive,
    pattern: &'static str,
}

/// What the function of that name computes, [`Primitive::Other`] if it is on no list. C++ and
/// Rust: the name as it was written.
pub fn by_name(name: &str) -> Primitive {
    let name = own(name);
    let fitting = TABLE.iter().filter(|rule| fits(rule.pattern, name));
    let longest = fitting.max_by_key(|rule| rule.pattern.len());
    longest.map_or(Primitive::Other, |rule| rule.primitive)
}

/// The name without what keeps several copies of a library apart: `aws_lc_0_47_0_`,
/// `ring_core_0_17_14__`; and without underscores before it.
fn own(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    let prefixes = ["aws_lc_fips_", "aws_lc_", "ring_core_"];
    match prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        Some(rest) => rest.trim_start_matches(|c: char| c == '_' || c.is_ascii_digit()),
        None => name,
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    if let Some(whole) = pattern.strip_suffix('$') {
        // Compilers put `.cold`, `.part.0` and the like behind the name.
        let rest = name.strip_prefix(whole);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    }
    match pattern.split_once('*') {
        Some((first, later)) => name
            .strip_prefix(first)
            .is_some_and(|rest| rest.contains(later)),
        None => name.starts_with(pattern),
    }
}

fn parse(table: &'static str) -> Vec<Rule> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let rules = lines.flat_map(|line| {
        let mut words = line.split_whitespace();
        let primitive = words.next().and_then(|label| {
            let mut all = Primitive::ALL.into_iter();
            all.find(|one| one.label() == label)
        });
        let patterns =
            primitive.map(|primitive| words.map(move |pattern| Rule { primitive, pattern }));
        patterns.into_iter().flatten()
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_line_of_the_table_is_read_and_no_pattern_is_there_twice() {
        let text = include_str!("names.txt");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines
            .clone()
            .flat_map(|line| line.split_whitespace().skip(1));
        assert_eq!(TABLE.len(), words.count());
        let mut patterns = BTreeMap::new();
        for rule in TABLE.iter() {
            assert_eq!(
                patterns.insert(rule.pattern, rule.primitive),
                None,
                "{}",
                rule.pattern
            );
            assert_eq!(rule.pattern.trim_start_matches('_'), rule.pattern);
        }
    }

    /// Functions of real libraries, each with what a person found in its source.
    #[test]
    fn functions_of_real_libraries_are_what_their_sources_say() {
        let mut wrong = Vec::new();
        for line in include_str!("testdata/functions.txt").lines() {
            let Some((label, names)) = line.split_once(": ") else {
                continue;
            };
            for name in names.split(' ') {
                let found = by_name(name).label();
                if found != label {
                    wrong.push(format!("{name}: {found}, not {label}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn copies_of_a_library_under_a_prefix_are_known() {
        for (name, expected) in [
            ("aws_lc_0_47_0_bn_mul_mont", Primitive::BigNumber),
            ("aws_lc_fips_0_13_4_SHA256_Update", Primitive::Sha),
            ("ring_core_0_17_14__x25519_fe_invert", Primitive::Curve25519),
            ("ring_core_0_17_14__p256_mul_mont", Primitive::P256),
        ] {
            assert_eq!(by_name(name), expected, "{name}");
        }
    }

    #[test]
    fn a_whole_name_is_no_beginning() {
        assert_eq!(by_name("free"), Primitive::Memory);
        assert_eq!(by_name("free.part.0"), Primitive::Memory);
        assert_eq!(by_name("freeaddrinfo"), Primitive::Other);
    }

    proptest! {
        #[test]
        fn any_name_has_a_primitive(name in ".{0,100}") {
            by_name(&name);
        }
    }
}
