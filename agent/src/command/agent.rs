//! `tlsprof agent`: profiles until it is stopped, and serves metrics.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{doctor, new_ledger, session_options, stop_flag};
use crate::advise::{Calibrations, Finding, Setting, Thresholds, advise};
use crate::cli::AgentOptions;
use crate::config::Config;
use crate::discover::host::aes_in_hardware;
use crate::discover::selection::Selection;
use crate::ledger::Recent;
use crate::outlet::doctor::Capability;
use crate::outlet::http::{Access, Server};
use crate::outlet::metrics::{AgentStatus, Metrics};
use crate::session::Session;

/// How long one turn waits for evidence.
const TURN: Duration = Duration::from_millis(100);
/// How often the agent's word on itself is renewed.
const STATUS_PERIOD: Duration = Duration::from_secs(1);
/// How often services are judged: the least common time between scrapes.
const FINDINGS_PERIOD: Duration = Duration::from_secs(15);

pub(super) fn run(options: &AgentOptions, config: &Config) -> Result<ExitCode> {
    let stop = stop_flag()?;
    let selection = if options.services.is_empty() {
        Selection::All
    } else {
        Selection::Named(options.services.clone())
    };
    let mut session_options = session_options(config, selection, Some(config.agent.budget));
    session_options.ask_certificates |= options.ask_certificates;
    let ledger = new_ledger(config);
    let metrics = Arc::new(Metrics::new(&ledger));
    // First: a wrong file or a port in use is told before any probe is attached.
    let server = serve(options, config, &metrics)?;
    let capabilities = doctor::diagnose(config).capabilities;
    let mut session = Session::start(&session_options, ledger)?;
    metrics.set_agent(status(&session, &capabilities));
    eprintln!("tlsprof: profiling {}", session.coverage());
    eprintln!("tlsprof: listening on {}", server.url());
    let mut recent = Recent::new((&config.limits).into());
    let mut told = Instant::now();
    let mut judged = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        session.turn(TURN, |service, evidence| {
            metrics.observe(service, evidence);
            recent.book(service, evidence);
        })?;
        if told.elapsed() >= STATUS_PERIOD {
            metrics.set_agent(status(&session, &capabilities));
            told = Instant::now();
        }
        if judged.elapsed() >= FINDINGS_PERIOD {
            let thresholds = Thresholds::from(&config.findings);
            metrics.set_findings(&judge(&session, &mut recent, thresholds));
            judged = Instant::now();
        }
    }
    server.stop();
    Ok(ExitCode::SUCCESS)
}

fn serve(options: &AgentOptions, config: &Config, metrics: &Arc<Metrics>) -> Result<Server> {
    let file = options.web_config.as_ref();
    let access = match file.or(config.agent.web_config.as_ref()) {
        Some(file) => Access::from_file(file)?,
        None => Access::open(),
    };
    let address = options.listen.unwrap_or(config.agent.listen);
    Ok(Server::start(address, Arc::clone(metrics), access)?)
}

/// What is wrong with services by their last minutes. Nothing is calibrated, which would
/// cost a second of CPU time; and for metrics it does not matter which server it is.
fn judge(session: &Session, recent: &mut Recent, thresholds: Thresholds) -> Vec<Finding> {
    let at = session.elapsed();
    recent.follow(&session.ledger(), at);
    let (ledger, elapsed) = recent.accounts(at);
    let setting = Setting {
        elapsed,
        aes_in_hardware: aes_in_hardware(),
    };
    advise(ledger, &Calibrations::new(), |_| "", setting, thresholds)
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
    }
}
