#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use super::{html, text};
use crate::html::check;
use crate::terminal::Style;
use tlsprof_advise::Kind;
use tlsprof_common::golden;
use tlsprof_report::model::{Outcome, Report, Requests, Resumption, Role, Step, Witness};
use tlsprof_report::sample;

#[test]
fn snapshot_at_80_columns() {
    let text = text(&sample::report(), Style::plain(80), false);
    golden::snapshot("report-80.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn snapshot_at_120_columns() {
    let text = text(&sample::report(), Style::plain(120), false);
    golden::snapshot("report-120.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}

/// The whole of it in docs/sample-report.md, a few lines of it in README.md.
#[test]
fn sample_in_the_documentation() {
    const BEGIN: &str = "from agent/report/src/sample.rs";
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = text(&sample::report(), Style::plain(100), false);
    for (page, part) in [
        ("docs/sample-report.md", text.as_str()),
        ("README.md", &excerpt(&text)),
    ] {
        let block = format!("```\n{part}```\n");
        golden::check_part(&format!("{root}/{page}"), BEGIN, &block);
    }
}

/// The headline, and a finding without its risk.
fn excerpt(report: &str) -> String {
    let (headline, _) = report.split_once("\n\n").unwrap();
    let finding = report
        .split("\n\n")
        .find(|part| part.contains("slow-key-exchange"));
    let (finding, _) = finding.unwrap().split_once("    Risk:").unwrap();
    format!("{headline}\n...\n{finding}...\n")
}

#[test]
fn snapshot_with_all_details() {
    let text = text(&sample::report(), Style::plain(80), true);
    golden::snapshot("report-verbose.txt", &text);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

/// One of them uses little CPU time, another is a client: neither is hidden from who asks.
#[test]
fn services_of_little_interest_are_folded() {
    let mut report = sample::report();
    report.services.truncate(3);
    let [_, small, client] = &mut *report.services else {
        panic!("three services")
    };
    small.service_name = "small.service".to_owned();
    small.cpu_seconds.user = 0.01;
    small.cpu_seconds.system = 0.0;
    client.service_name = "load generator".to_owned();
    client.ports.clear();
    for group in &mut client.handshakes {
        group.role = Role::Client;
    }
    for one in &mut client.connections {
        one.role = Role::Client;
    }
    let folded = "2 services with less than 1% of the CPU time, or only as clients";
    let page = html(&report);
    check::page(&page);
    let (open, inside) = page
        .split_once(&format!("<summary>{folded}</summary>"))
        .unwrap();
    let heading = |name: &str| format!(">{name}</h2>");
    assert!(open.contains(&heading("nginx.service")), "{page}");
    for name in ["small.service", "load generator"] {
        assert!(inside.contains(&heading(name)), "{name}: {page}");
        assert!(!open.contains(&heading(name)), "{name}: {page}");
    }
    let brief = text(&report, Style::plain(200), false);
    assert!(
        brief.contains(&format!("{folded}: see --verbose")),
        "{brief}"
    );
    assert!(!brief.contains("\nsmall.service\n"), "{brief}");
    let whole = text(&report, Style::plain(200), true);
    assert!(whole.contains("  small.service\n"), "{whole}");
    // The only service is never folded, whatever it is.
    report.services.drain(..2);
    assert!(!html(&report).contains("or only as clients"));
}

#[test]
fn a_page_has_the_pages_of_its_findings_and_no_others() {
    let page = html(&sample::report());
    for kind in Kind::all() {
        let findings = sample::report().findings;
        let has = findings.iter().any(|one| one.id == kind.label);
        let target = format!("id=\"about-{}\"", kind.label);
        assert_eq!(page.contains(&target), has, "{kind:?}");
        // A link within the pages leads to a page that may not be there: then it is text.
        let link = format!("href=\"#about-{}\"", kind.label);
        assert!(has || !page.contains(&link), "{kind:?}");
    }
}

#[test]
fn snapshot_with_losses_and_a_command() {
    let text = text(&sample::lossy_report(), Style::plain(80), false);
    golden::snapshot("report-lossy.txt", &text);
}

#[test]
fn snapshot_of_silence() {
    let text = text(&sample::silent_report(), Style::plain(80), false);
    golden::snapshot("report-silent.txt", &text);
}

#[test]
fn the_whole_reason_of_a_library_without_probes_is_shown() {
    let reason = format!(
        "not profiled: {}",
        "process 20 (qemu) is the reason ".repeat(5)
    );
    let mut report = sample::report();
    for library in report
        .services
        .iter_mut()
        .flat_map(|s| &mut s.tls_libraries)
    {
        library.state.clone_from(&reason);
    }
    let text = text(&report, Style::plain(80), false);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(reason.trim()), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = Style {
        colour: true,
        width: 100,
    };
    let shown = text(&sample::lossy_report(), coloured, false);
    let mut bare = shown.clone();
    for code in [0, 1, 2, 31, 32, 33, 36] {
        bare = bare.replace(&format!("\x1b[{code}m"), "");
    }
    let trimmed: Vec<&str> = bare.lines().map(str::trim_end).collect();
    let plain = text(&sample::lossy_report(), Style::plain(100), false);
    assert_ne!(shown, plain);
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn page_of_a_report() {
    let page = html(&sample::report());
    check::page(&page);
    golden::snapshot("report.html", &page);
}

#[test]
fn page_with_losses_and_a_command() {
    let page = html(&sample::lossy_report());
    check::page(&page);
    golden::snapshot("report-lossy.html", &page);
}

#[test]
fn silence_has_a_page_too() {
    let page = html(&sample::silent_report());
    check::page(&page);
    assert!(page.contains("No TLS handshake was seen") && page.contains("What to check"));
}

#[test]
fn names_are_text_and_never_markup() {
    let hostile = "<img src=x onerror=alert(1)>\x1b[2J\"'&";
    let mut report = sample::lossy_report();
    report.host.hostname = hostile.to_owned();
    report.started_at = hostile.to_owned();
    report.notes.push(hostile.to_owned());
    for service in &mut report.services {
        service.service_name = hostile.to_owned();
        service.executable = hostile.to_owned();
        for library in &mut service.tls_libraries {
            library.path = hostile.to_owned();
            library.state = hostile.to_owned();
        }
        for group in &mut service.handshakes {
            group.cipher = hostile.to_owned();
            group.group = hostile.to_owned();
        }
        for alert in &mut service.alerts {
            alert.description = hostile.to_owned();
        }
    }
    report.findings = sample::report().findings;
    for finding in &mut report.findings {
        finding.title = hostile.to_owned();
        finding.evidence.push(hostile.to_owned());
        finding.remedy.directive = hostile.to_owned();
    }
    if let Some(command) = &mut report.command {
        command.arguments.push(hostile.to_owned());
    }
    let page = html(&report);
    assert!(!page.contains("<img"), "markup in the page");
    assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
    assert!(page.contains("&lt;img"));
}

#[test]
fn a_lower_bound_is_called_one_wherever_it_stands() {
    let mut report = sample::report();
    let services = &mut report.services;
    services.retain(|one| one.socket_handshakes.iter().any(|one| one.offloaded > 0));
    let first = services.first_mut().unwrap();
    first.handshake_cpu_is_lower_bound = true;
    let page = html(&report);
    let text = text(&report, Style::plain(120), false);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Headline, and CPU and share in the table of services.
    assert_eq!(text.matches("at least").count(), 3, "{text}");
    // And the key figures: share and mean. The pages of findings have these words too.
    let (page, _) = page.split_once("About these findings").unwrap();
    assert_eq!(page.matches("at least").count(), 5, "{page}");
    let reason = "other threads may have worked on it";
    assert!(text.contains(reason) && page.contains(reason), "{page}");
}

#[test]
fn accounts_that_disagree_are_told_and_give_no_share() {
    let mut report = sample::report();
    let first = report.services.first_mut().unwrap();
    first.cpu_seconds.user = first.handshake_cpu_seconds() * 0.6;
    first.cpu_seconds.system = 0.0;
    let text = text(&report, Style::plain(80), false);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("The CPU times of nginx.service disagree"),
        "{text}"
    );
    assert!(words.starts_with("nginx.service spent "), "{text}");
    assert!(!words.contains("spends"), "{text}");
    assert!(!words.contains("CPU per request:"), "{text}");
}

#[test]
fn an_encrypted_alert_is_a_failure_that_says_why_it_has_no_name() {
    let mut report = sample::report();
    for service in &mut report.services {
        service.alerts.clear();
        for group in &mut service.handshakes {
            group.version = "TLS1.3".to_owned();
            group.source = Witness::Socket;
            group.outcome = Outcome::Failed;
            group.errors.clear();
        }
    }
    let text = text(&report, Style::plain(120), false);
    assert!(text.contains("failed by an alert (named under"), "{text}");
    assert!(!text.contains("reason from the library"), "{text}");
    let page = html(&report);
    assert!(page.contains("TLS 1.3 encrypts most alerts"), "{page}");
}

#[test]
fn a_library_without_steps_is_named_as_the_reason() {
    let mut report = sample::report();
    report.services.truncate(1);
    let service = report.services.first_mut().unwrap();
    service.socket_handshakes.clear();
    service.steps.truncate(1);
    service.steps[0].step = Step::Unmeasured;
    let came_apart = "no handshake of that kind occurred while steps were measured";
    assert!(text(&report, Style::plain(120), false).contains(came_apart));
    for library in &mut report.services[0].tls_libraries {
        library.kind = "GnuTLS".to_owned();
    }
    let text = text(&report, Style::plain(120), false);
    assert!(
        text.contains("tlsprof does not measure the steps of GnuTLS."),
        "{text}"
    );
    assert!(!text.contains(came_apart), "{text}");
}

#[test]
fn turns_over_http2_are_in_no_headline() {
    let mut report = sample::report();
    let services = report.services.iter_mut();
    for one in services.flat_map(|one| &mut one.connections) {
        one.turns_are_requests = Some(false);
    }
    report.services[0].requests = Some(Requests::new(10, "h2load"));
    let shown = |report: &Report| text(report, Style::plain(1000), false);
    assert!(shown(&report).contains("CPU per request: 2.32 s (10 requests as counted by h2load"));
    report.services[0].requests = None;
    let text = shown(&report);
    assert!(!text.contains("CPU per request:"), "{text}");
    assert!(text.contains("turn (may carry several requests)"), "{text}");
}

#[test]
fn the_kind_of_a_hidden_key_is_named() {
    for (kind, name) in [
        ("rsa", "RSA"),
        ("ecdsa_p256", "ECDSA P-256"),
        ("ed25519", "Ed25519"),
    ] {
        let mut report = sample::report();
        for service in &mut report.services {
            service.hidden_signature = Some(kind.to_owned());
        }
        let text = text(&report, Style::plain(200), false);
        assert!(
            text.contains(&format!("the kind of its key: {name}.")),
            "{text}"
        );
    }
}

#[test]
fn who_profiles_java_is_told_how_its_code_gets_names() {
    let says = |executable: &str, nameless| {
        let mut report = sample::report();
        for service in &mut report.services {
            executable.clone_into(&mut service.executable);
            if let Some(samples) = &mut service.primitive_samples {
                samples.not_identified = samples.count * nameless / 100;
            }
        }
        text(&report, Style::plain(200), true).contains("Compiler.perfmap")
    };
    assert!(says("/usr/lib/jvm/17/bin/java", 20));
    assert!(!says("/usr/lib/jvm/17/bin/java", 5));
    assert!(!says("/usr/sbin/nginx", 20));
}

/// As on the live page: what no source could see is in neither part of the share.
#[test]
fn the_share_of_resumed_handshakes_is_of_those_of_which_it_is_known() {
    let says = |resumptions: &[(Resumption, u64)]| -> String {
        let mut report = sample::report();
        report.services.truncate(1);
        let service = report.services.first_mut().unwrap();
        let one = service.handshakes.first().unwrap().clone();
        let groups = resumptions.iter().map(|(resumption, count)| {
            let mut group = one.clone();
            (group.outcome, group.resumption, group.count) =
                (Outcome::Completed, *resumption, *count);
            group
        });
        service.handshakes = groups.collect();
        let text = text(&report, Style::plain(200), false);
        let (_, rest) = text.split_once(" 0 abandoned. ").unwrap();
        rest.lines().next().unwrap().to_owned()
    };
    let (full, resumed, unknown) = (Resumption::None, Resumption::Psk, Resumption::Unknown);
    assert_eq!(says(&[(full, 30), (resumed, 10)]), "25.0% were resumed.");
    assert_eq!(says(&[(full, 30)]), "None was resumed.");
    assert_eq!(
        says(&[(full, 30), (resumed, 10), (unknown, 60)]),
        "25.0% of the 40 whose resumption is known were resumed."
    );
    assert_eq!(says(&[(unknown, 60)]), "How many were resumed is unknown.");
}
