//! Programs that stand for one attach cookie each, for kernels that have no cookies
//! (before Linux 5.15).

use tlsprof_common::contract::TLSPROF_SINGLE_STEPPED;

/// Where one program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Offset of the instruction in the image's file.
    pub file_offset: u64,
    /// What the program reads as its attach cookie.
    pub cookie: u64,
    /// The kernel does not emulate the instruction. Programs see it as a bit of their attach cookie.
    pub single_stepped: bool,
}

impl Point {
    /// The attach cookie with that bit.
    pub(super) fn whole_cookie(self) -> u64 {
        let flag = u64::from(TLSPROF_SINGLE_STEPPED);
        self.cookie | if self.single_stepped { flag } else { 0 }
    }
}

/// Program, cookie, and the program that stands for the two.
const BY_COOKIE: [(&str, u64, &str); 10] = [
    ("handshake_enter", 1, "handshake_enter_1"),
    ("handshake_enter", 2, "handshake_enter_2"),
    ("step_enter", 0, "step_enter_0"),
    ("step_enter", 1, "step_enter_1"),
    ("step_enter", 2, "step_enter_2"),
    ("step_enter", 3, "step_enter_3"),
    ("step_enter", 4, "step_enter_4"),
    ("step_enter", 16, "step_enter_16"),
    ("step_enter", 17, "step_enter_17"),
    ("step_enter", 18, "step_enter_18"),
];

/// The programs that stand for `program`; none for one that asks for no cookie.
pub(super) fn substitutes(program: &str) -> impl Iterator<Item = &'static str> {
    let those = BY_COOKIE.iter().filter(move |(name, ..)| *name == program);
    those.map(|(.., substitute)| *substitute)
}

/// Whether a program stands for another.
pub(super) fn is_substitute(program: &str) -> bool {
    BY_COOKIE
        .iter()
        .any(|(.., substitute)| *substitute == program)
}

/// The points of `program` by the programs that stand for it, or by itself where
/// there are none.
pub(super) fn by_substitute(
    program: &'static str,
    points: &[Point],
) -> Vec<(&'static str, Vec<Point>)> {
    if substitutes(program).next().is_none() {
        return vec![(program, points.to_vec())];
    }
    let those = BY_COOKIE.iter().filter(|(name, ..)| *name == program);
    let groups = those.map(|(_, cookie, substitute)| {
        let group = points.iter().filter(|point| point.cookie == *cookie);
        (*substitute, group.copied().collect::<Vec<_>>())
    });
    groups.filter(|(_, group)| !group.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlsprof_common::contract::{
        TLSPROF_ROLE_CLIENT, TLSPROF_ROLE_SERVER, TLSPROF_STEP_BY_PEER, TLSPROF_STEP_COUNT,
        TLSPROF_STEP_DECAPSULATE, TLSPROF_STEP_ENCAPSULATE,
    };

    const fn point(cookie: u64) -> Point {
        Point {
            file_offset: 0x100 + cookie,
            cookie,
            single_stepped: false,
        }
    }

    #[test]
    fn points_go_to_the_program_of_their_cookie() {
        let points = [point(2), point(1), point(2)];
        assert_eq!(
            by_substitute("handshake_enter", &points),
            [
                ("handshake_enter_1", vec![point(1)]),
                ("handshake_enter_2", vec![point(2), point(2)]),
            ]
        );
        assert_eq!(
            by_substitute("connection_free", &points),
            [("connection_free", points.to_vec())]
        );
    }

    #[test]
    fn a_program_is_told_that_its_instruction_is_single_stepped() {
        let stepped = Point {
            single_stepped: true,
            ..point(17)
        };
        assert_eq!(stepped.whole_cookie(), 256 + 17);
        assert_eq!(point(17).whole_cookie(), 17);
    }

    #[test]
    fn every_cookie_of_the_contract_has_a_program() {
        let steps = (0..TLSPROF_STEP_COUNT).chain([
            TLSPROF_STEP_BY_PEER,
            TLSPROF_STEP_ENCAPSULATE,
            TLSPROF_STEP_DECAPSULATE,
        ]);
        let all = steps.map(|cookie| ("step_enter", cookie)).chain(
            [TLSPROF_ROLE_SERVER, TLSPROF_ROLE_CLIENT].map(|cookie| ("handshake_enter", cookie)),
        );
        for (program, cookie) in all {
            let points = [point(u64::from(cookie))];
            let groups = by_substitute(program, &points);
            let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [format!("{program}_{cookie}")]);
        }
    }
}
