//! The CPU breakdown: CPU samples by activity, mode, module and function, drawn as an SVG in the
//! way of a flame graph. It shows no call stacks: none are collected.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use inferno::flamegraph::{self, Options};

use tlsprof_evidence::activity::{Activity, Mode};

use super::terminal::printable;

/// What samples have in common, by names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack {
    /// Name of the service.
    pub service: String,
    /// What it was doing.
    pub activity: Activity,
    /// In which mode.
    pub mode: Mode,
    /// File name of the image, or `kernel`.
    pub module: String,
    /// The function; empty where it is not known.
    pub function: String,
}

/// There is no CPU breakdown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing to draw.
    #[error("no CPU sample hit the profiled services: profile longer or under load")]
    Empty,
    /// It could not be drawn or written.
    #[error("cannot write the CPU breakdown")]
    Write(#[from] std::io::Error),
}

/// Writes the SVG. The widths are numbers of samples. The services are the lowest frames
/// where there are several.
///
/// # Errors
/// [`Error::Empty`] without samples; [`Error::Write`] when the output fails.
pub fn render(stacks: &BTreeMap<Stack, u64>, out: impl Write) -> Result<(), Error> {
    let lines = fold(stacks);
    if lines.is_empty() {
        return Err(Error::Empty);
    }
    let mut options = Options::default();
    "CPU breakdown by activity, mode, module and function".clone_into(&mut options.title);
    if let Some(service) = only_service(stacks) {
        options.subtitle = Some(printable(service).into_owned());
    }
    options.hash = true;
    options.deterministic = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)?;
    Ok(())
}

/// One line for each stack: its frames, joined by `;`, and the number of samples.
fn fold(stacks: &BTreeMap<Stack, u64>) -> Vec<String> {
    let with_service = only_service(stacks).is_none();
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in stacks.iter().filter(|(_, count)| **count > 0) {
        let service = with_service.then_some(stack.service.as_str());
        let frames = [
            service.unwrap_or_default(),
            stack.activity.label(),
            stack.mode.label(),
            &stack.module,
            &stack.function,
        ];
        let frames: Vec<String> = frames
            .into_iter()
            .filter(|frame| !frame.is_empty())
            .map(frame)
            .collect();
        *folded.entry(frames.join(";")).or_default() += count;
    }
    folded
        .into_iter()
        .map(|(frames, count)| format!("{frames} {count}"))
        .collect()
}

fn only_service(stacks: &BTreeMap<Stack, u64>) -> Option<&str> {
    let services: BTreeSet<&str> = stacks.keys().map(|stack| stack.service.as_str()).collect();
    match services.len() {
        1 => services.first().copied(),
        _ => None,
    }
}

/// A name without what has a meaning in a line. Names come from other people's files: a
/// space and a number at their end would be taken for a second count.
fn frame(name: &str) -> String {
    printable(name).replace(';', ":").replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn stack(service: &str, module: &str, function: &str) -> Stack {
        Stack {
            service: service.into(),
            activity: Activity::Encryption,
            mode: Mode::User,
            module: module.into(),
            function: function.into(),
        }
    }

    fn svg(stacks: &BTreeMap<Stack, u64>) -> String {
        let mut out = Vec::new();
        render(stacks, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn frames_are_activity_mode_module_and_function() {
        let stacks = BTreeMap::from([
            (stack("nginx", "libcrypto.so.3", "aesni_ctr32"), 7),
            (stack("nginx", "libc.so.6", ""), 2),
            (stack("nginx", "zlib", "unhit"), 0),
        ]);
        assert_eq!(
            fold(&stacks),
            [
                "encryption;user;libc.so.6 2",
                "encryption;user;libcrypto.so.3;aesni_ctr32 7",
            ]
        );
        let svg = svg(&stacks);
        assert!(svg.contains("<svg"), "{svg}");
        assert!(svg.contains("<title>aesni_ctr32 (7 samples, 77.78%)</title>"));
        assert!(svg.contains("<title>all (9 samples, 100%)</title>"));
        assert!(svg.contains(">nginx<"));
    }

    #[test]
    fn several_services_are_told_apart() {
        let stacks = BTreeMap::from([
            (stack("nginx", "libc.so.6", "memcpy"), 1),
            (stack("haproxy", "libc.so.6", "memcpy"), 1),
        ]);
        assert_eq!(
            fold(&stacks),
            [
                "haproxy;encryption;user;libc.so.6;memcpy 1",
                "nginx;encryption;user;libc.so.6;memcpy 1",
            ]
        );
    }

    #[test]
    fn names_cannot_break_out_of_their_frame() {
        let evil = "f;g 12\n</title><script>alert(1)</script>\u{1b}[2J 7";
        let stacks = BTreeMap::from([(stack("a;b", evil, "operator new 3"), 5)]);
        let lines = fold(&stacks);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines.first().unwrap().matches(';').count(), 3);
        let svg = svg(&stacks);
        assert!(!svg.contains("<script>alert"));
        assert!(!svg.contains('\u{1b}'));
        assert!(svg.contains("<title>all (5 samples, 100%)</title>"));
    }

    #[test]
    fn without_samples_there_is_no_graph() {
        let mut out = Vec::new();
        assert!(matches!(
            render(&BTreeMap::new(), &mut out),
            Err(Error::Empty)
        ));
        assert!(out.is_empty());
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let stacks = BTreeMap::from([(stack("nginx", "libc.so.6", "memcpy"), 1)]);
        assert!(matches!(
            render(&stacks, full.unwrap()),
            Err(Error::Write(_))
        ));
    }
}
