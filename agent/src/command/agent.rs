//! `tlsprof agent`: profiles until it is stopped, and serves metrics and the live page.

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;

use super::{TURN, annotate, doctor, new_ledger, session_options, stop_flag};
use crate::advise::Thresholds;
use crate::cli::AgentOptions;
use crate::config::Config;
use crate::discover::host::{Host, aes_in_hardware};
use crate::discover::selection::Selection;
use crate::outlet::doctor::Capability;
use crate::outlet::http::{Access, Server, Shown};
use crate::outlet::metrics::{AgentStatus, Metrics};
use crate::outlet::report::model;
use crate::outlet::watch::{About, Bounds, SharedWatch, Watch};
use crate::privilege;
use crate::session::Session;

/// How often services are judged: the least common time between scrapes.
const FINDINGS_PERIOD: Duration = Duration::from_secs(15);

pub(super) fn run(options: &AgentOptions, config: &Config) -> Result<ExitCode> {
    let stop = stop_flag()?;
    // Before there are other threads, which have what their parent has.
    privilege::keep_needed().context("cannot give up privileges")?;
    let selection = if options.services.is_empty() {
        Selection::All
    } else {
        Selection::Named(options.services.clone())
    };
    let mut session_options = session_options(config, selection, Some(config.agent.budget));
    session_options.ask_certificates |= options.ask_certificates;
    let ledger = new_ledger(config);
    let watch = Watch::new(about()?, (&config.limits).into(), Bounds::default());
    let shown = Shown {
        metrics: Arc::new(Metrics::new(&ledger)),
        watch: SharedWatch::new(watch.into()),
    };
    // First: a wrong file or a port in use is told before any probe is attached.
    let server = serve(options, config, &shown)?;
    let capabilities = doctor::diagnose(config).capabilities;
    let session = Session::start(&session_options, ledger)?;
    privilege::started().context("cannot give up privileges")?;
    eprintln!("tlsprof: profiling {}", session.coverage());
    eprintln!("tlsprof: listening on {}", server.url());
    eprintln!("tlsprof: live page on {}", server.page());
    let mut agent = Agent {
        session,
        shown,
        capabilities,
        thresholds: Thresholds::from(&config.findings),
        read: Duration::ZERO,
        judged: None,
        aes_in_hardware: aes_in_hardware(),
    };
    agent.tell();
    while !stop.load(Ordering::Relaxed) {
        agent.turn()?;
    }
    server.stop();
    Ok(ExitCode::SUCCESS)
}

/// A session, and what is shown of it.
struct Agent {
    session: Session,
    shown: Shown,
    capabilities: Vec<Capability>,
    thresholds: Thresholds,
    /// When CPU time was booked that has been shown.
    read: Duration,
    judged: Option<Instant>,
    aes_in_hardware: bool,
}

impl Agent {
    fn turn(&mut self) -> Result<()> {
        let Self { session, shown, .. } = self;
        session.turn(TURN, |service, evidence| {
            shown.metrics.observe(service, evidence);
            watch(shown).book(service, evidence);
        })?;
        let accounted = self.session.accounted_at();
        if accounted > self.read {
            self.read = accounted;
            self.session.follow_ports();
            self.tell();
        }
        let due = |judged: Instant| judged.elapsed() >= FINDINGS_PERIOD;
        if self.judged.is_none_or(due) {
            self.judged = Some(Instant::now());
            self.judge();
        }
        Ok(())
    }

    /// Renews what is shown, the agent's word on itself included.
    fn tell(&self) {
        let session = &self.session;
        self.shown
            .metrics
            .set_agent(status(session, &self.capabilities));
        let (cost, losses) = (session.cost(), session.losses());
        watch(&self.shown).read(&session.ledger(), self.read, cost, losses);
    }

    /// What is wrong with services by their last minutes.
    fn judge(&self) {
        let facts = self.session.recent_facts();
        let ledger = self.session.ledger();
        let at = self.session.elapsed();
        let mut watch = watch(&self.shown);
        let findings = watch.judge(&ledger, at, facts, self.thresholds, self.aes_in_hardware);
        self.shown.metrics.set_findings(findings);
    }
}

fn watch(shown: &Shown) -> MutexGuard<'_, Watch> {
    // A panic elsewhere leaves it usable: it is looked at, not changed.
    shown.watch.lock().unwrap_or_else(PoisonError::into_inner)
}

fn about() -> Result<About> {
    let host = Host::read()?;
    Ok(About {
        run: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
        tlsprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: model::Host {
            hostname: host.hostname,
            kernel: host.kernel,
            cpus: host.cpus,
        },
        started_at: format!("{:.0}", Timestamp::now()),
    })
}

fn serve(options: &AgentOptions, config: &Config, shown: &Shown) -> Result<Server> {
    let file = options.web_config.as_ref();
    let access = match file.or(config.agent.web_config.as_ref()) {
        // The thread that serves reads it again, and has no privileges.
        Some(file) => privilege::without(|| Access::from_file(file))
            .context("cannot give up privileges")??,
        None => Access::open(),
    };
    let address = options.listen.unwrap_or(config.agent.listen);
    Ok(Server::start(address, shown.clone(), access)?)
}

fn status(session: &Session, capabilities: &[Capability]) -> AgentStatus {
    let cost = session.cost();
    AgentStatus {
        cpu: Duration::from_secs_f64(cost.cpu_seconds),
        resident_memory_bytes: cost.memory_bytes,
        bpf_run: Duration::from_secs_f64(cost.bpf_run_seconds),
        bpf_runs: cost.bpf_runs,
        probe_hits: cost.probe_hits,
        target_cost: Duration::from_secs_f64(cost.target_seconds),
        events_lost: session.loss_counts(),
        capabilities: capabilities.to_vec(),
        step_duty_ratio: session.step_duty_ratio(),
        profiled_images: session.profiled_images() as u64,
        services: session.service_count() as u64,
        load_tests: annotate::load_tests(),
    }
}
