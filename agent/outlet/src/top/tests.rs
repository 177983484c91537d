//! What is drawn, as kept in agent/tests/snapshots/top-*.txt, and in which order.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod list;

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::draw::draw;
use super::draw::theme::Theme;
use super::key::Key;
use super::order::{Column, Order};
use super::screen::{Drawn, Page, Screen, Tab};
use super::view::View;
use crate::watch::{About, Bounds, Watch};
use tlsprof_advise::Thresholds;
use tlsprof_common::{Outcome, Resumption, Role, golden};
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::sample::{connection, handshake, opening};
use tlsprof_evidence::{Evidence, Handshake};
use tlsprof_ledger::{Sampling, SharedLedger};
use tlsprof_report::ServiceFacts;
use tlsprof_report::model::{AgentCost, Host, Loss};

const NGINX: &str = "nginx.service";
const LONG: &str = "kubepods-besteffort-pod6a1f/checkout-backend-canary";
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];
const INTERVAL: Duration = Duration::from_secs(2);

/// A host under watch, in which time passes when it is told to.
struct Watched {
    ledger: SharedLedger,
    watch: Watch,
    at: Duration,
    losses: Vec<Loss>,
}

impl Watched {
    fn new() -> Self {
        let about = About {
            run: String::new(),
            tlsprof_version: "0.0.0".into(),
            host: Host {
                hostname: "web1".into(),
                kernel: "6.12.48-amd64".into(),
                cpus: 8,
            },
            started_at: "2026-11-21T12:00:00Z".into(),
        };
        let bounds = Bounds {
            point: INTERVAL,
            ..Bounds::default()
        };
        let ledger = SharedLedger::default();
        let sampling = Sampling::Every(Duration::from_millis(10));
        ledger.write().unwrap().set_sampling(sampling);
        Self {
            watch: Watch::new(SharedLedger::clone(&ledger), about, bounds),
            ledger,
            at: Duration::ZERO,
            losses: Vec::new(),
        }
    }

    fn book(&self, service: &str, evidence: &Evidence) {
        self.ledger.write().unwrap().book(service, evidence);
    }

    /// So many connections, every fourth of which resumes; every fiftieth fails.
    fn visits(&mut self, service: &str, number: u32) {
        for n in 0..number {
            let one = Handshake {
                group: "secp384r1",
                resumption: if n % 4 == 3 {
                    Resumption::Psk
                } else {
                    Resumption::None
                },
                outcome: if n % 50 == 49 {
                    Outcome::Failed
                } else {
                    Outcome::Completed
                },
                cpu: Duration::from_micros(if n % 4 == 3 { 150 } else { 3000 }),
                ..handshake()
            };
            self.book(service, &Evidence::Opened(opening(Role::Server)));
            self.book(service, &Evidence::Handshake(Box::new(one)));
            let mut closed = connection();
            closed.ended = self.ledger.read().unwrap().now();
            self.book(service, &Evidence::Closed(Box::new(closed)));
        }
    }

    /// CPU time, and as many samples as it has periods.
    fn works(&mut self, service: &str, activity: Activity, mode: Mode, centiseconds: u64) {
        let mut ledger = self.ledger.write().unwrap();
        ledger.add_samples(service, activity, mode, centiseconds);
        let time = Duration::from_millis(10 * centiseconds);
        let (user, system) = match mode {
            Mode::User => (time, Duration::ZERO),
            _ => (Duration::ZERO, time),
        };
        ledger.add_cpu(service, user, system);
    }

    fn pass(&mut self) {
        self.at += INTERVAL;
        self.ledger
            .write()
            .unwrap()
            .advance(Duration::from_secs(1000) + self.at);
        let cost = AgentCost {
            cpu_seconds: self.at.as_secs_f64() / 50.0,
            profiled_seconds: self.at.as_secs_f64() / 200.0,
            ..AgentCost::default()
        };
        let losses = self.losses.clone();
        self.watch.read(self.at, cost, losses);
    }

    fn judge(&mut self) {
        let facts = ServiceFacts {
            executable: "/usr/sbin/nginx".into(),
            ports: vec![443, 8443],
            processes: 9,
            ..ServiceFacts::default()
        };
        let facts = BTreeMap::from([(NGINX.to_owned(), facts)]);
        let thresholds = Thresholds::default();
        self.watch.judge(self.at, facts, thresholds, true);
    }

    fn view(&self, screen: &Screen) -> View {
        let opened = match &screen.page {
            Page::Services => None,
            Page::Service(name) => Some(name.as_str()),
        };
        View::of(&self.watch, INTERVAL, opened)
    }
}

/// Two minutes of a web server under a load that comes and goes, and of others.
fn host() -> Watched {
    let mut host = Watched::new();
    for round in 0..60_u32 {
        let visits = 40 + 10 * (round % 7);
        host.visits(NGINX, visits);
        // As much as the handshakes say: 2.3 ms each.
        let in_handshakes = u64::from(visits * 23 / 100);
        host.works(NGINX, Activity::Handshake, Mode::User, in_handshakes);
        host.works(NGINX, Activity::Encryption, Mode::User, 12);
        host.works(NGINX, Activity::TcpClose, Mode::System, 4);
        host.works(NGINX, Activity::SocketIo, Mode::System, 9);
        host.works(NGINX, Activity::Application, Mode::User, 30);
        host.visits(LONG, 3);
        host.works(LONG, Activity::Application, Mode::User, 25);
        host.works("postgresql.service", Activity::Application, Mode::User, 40);
        host.works("idle.service", Activity::Application, Mode::System, 0);
        host.pass();
    }
    host.judge();
    host
}

fn drawn(
    host: &Watched,
    screen: &Screen,
    (width, height): (u16, u16),
    colour: bool,
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let view = host.view(screen);
    terminal
        .draw(|frame| {
            draw(frame, &view, screen, Theme { colour });
        })
        .unwrap();
    terminal
}

fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width);
    let rows = buffer.content().chunks(width);
    let lines = rows.map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn snapshot(name: &str, host: &Watched, screen: &Screen) {
    for size in SIZES {
        let text = text(&drawn(host, screen, size, false));
        golden::snapshot(&format!("top-{name}-{}.txt", size.0), &text);
    }
}

fn opened(tab: Tab) -> Screen {
    Screen {
        page: Page::Service(NGINX.into()),
        tab,
        ..Screen::default()
    }
}

#[test]
fn snapshot_of_the_list() {
    snapshot("list", &host(), &Screen::default());
}

#[test]
fn names_stay_where_there_is_little_room() {
    let host = host();
    let heads = |width: u16, screen: &Screen| {
        let text = text(&drawn(&host, screen, (width, 24), false));
        assert!(
            text.contains(NGINX) && text.contains("postgresql.service"),
            "{text}"
        );
        assert!(text.contains("? help  q quit"), "{text}");
        let line = text.lines().find(|line| line.contains(" service")).unwrap();
        let words = line.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let screen = Screen::default();
    assert_eq!(
        heads(60, &screen),
        ["service", "cores▼", "TLS", "hs/s", "found"]
    );
    assert_eq!(heads(40, &screen), ["service", "cores▼", "TLS"]);
    let mut by_findings = Screen::default();
    by_findings.order.by = Column::Findings;
    // Not what the list is sorted by.
    assert_eq!(heads(40, &by_findings), ["service", "TLS", "found▼"]);
}

#[test]
fn ports_are_listed_where_there_is_room() {
    let host = host();
    let at = |width| text(&drawn(&host, &Screen::default(), (width, 24), false));
    assert!(
        at(200).contains(" nginx.service :443 :8443 "),
        "{}",
        at(200)
    );
    assert!(!at(40).contains(":443"), "{}", at(40));
}

#[test]
fn snapshots_of_a_service() {
    let host = host();
    snapshot("now", &host, &opened(Tab::Now));
    snapshot("handshakes", &host, &opened(Tab::Handshakes));
    snapshot("connections", &host, &opened(Tab::Connections));
    snapshot("findings", &host, &opened(Tab::Findings));
}

#[test]
fn snapshot_of_help_over_a_paused_list() {
    let screen = Screen {
        help: true,
        paused: true,
        ..Screen::default()
    };
    snapshot("help", &host(), &screen);
}

#[test]
fn snapshot_of_an_agent_that_loses_data() {
    let mut host = host();
    host.losses.push(Loss {
        reason: tlsprof_common::Loss::EventRingFull,
        count: 1234,
    });
    host.pass();
    let screen = Screen {
        filter: "ngi".into(),
        typing: true,
        ..Screen::default()
    };
    snapshot("lossy", &host, &screen);
}

#[test]
fn a_loss_after_which_counts_are_complete_is_no_alarm() {
    let mut host = host();
    host.losses.push(Loss {
        reason: tlsprof_common::Loss::BeganBeforeAttach,
        count: 2,
    });
    host.pass();
    let screen = Screen::default();
    let text = text(&drawn(&host, &screen, SIZES[0], false));
    assert!(!text.contains("lost"), "{text}");
    let state = host.view(&screen).state;
    assert!(state.losses.is_empty() && state.harmless_losses.len() == 1);
}

#[test]
fn before_the_first_interval_is_over_nothing_is_made_up() {
    let host = Watched::new();
    let text = text(&drawn(&host, &Screen::default(), SIZES[0], false));
    assert!(
        text.contains("waiting for the end of the first interval"),
        "{text}"
    );
    let text = self::text(&drawn(&host, &opened(Tab::Findings), SIZES[0], false));
    assert!(
        text.contains("No findings yet: services are checked"),
        "{text}"
    );
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let host = host();
    let coloured = |colour| {
        let terminal = drawn(&host, &Screen::default(), SIZES[0], colour);
        let cells = terminal.backend().buffer().content().to_vec();
        cells
            .iter()
            .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn every_size_is_drawn() {
    let host = host();
    let mut help = opened(Tab::Handshakes);
    help.help = true;
    for screen in [
        Screen::default(),
        opened(Tab::Now),
        opened(Tab::Findings),
        help,
    ] {
        for width in [1, 39, 40, 41, 60, 79, 80, 99, 100, 119, 120, 300] {
            for height in [1, 7, 8, 9, 24, 100] {
                drawn(&host, &screen, (width, height), true);
            }
        }
    }
}

#[test]
fn a_name_cannot_drive_the_terminal() {
    let mut host = Watched::new();
    host.visits("evil\x1b[2J", 3);
    host.pass();
    let mut screen = Screen::default();
    for page in [Page::Services, Page::Service("evil\x1b[2J".into())] {
        screen.page = page;
        let text = text(&drawn(&host, &screen, SIZES[0], true));
        assert!(
            text.contains("evil\u{fffd}[2J") && !text.contains('\x1b'),
            "{text}"
        );
    }
}
