//! `tlsprof agent`: profiles until it is stopped, and serves metrics and the live page.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::monitor::{Monitor, about, locked};
use super::notices::Notices;
use super::purpose::Purpose;
use super::reload::Reload;
use super::setup::{PRIVILEGES, STARTING, new_ledger, session_options, stop_flag};
use super::{doctor, own, service_manager};
use crate::cli::AgentOptions;
use crate::config::Config;
use crate::session::Session;
use tlsprof_common::privilege::{self, Kept};
use tlsprof_discover::selection::Selection;
use tlsprof_ledger::SharedLedger;
use tlsprof_outlet::doctor::Capability;
use tlsprof_outlet::http::{Access, Server, Shown};
use tlsprof_outlet::load_test::{self, LoadTests};
use tlsprof_outlet::metrics::{AgentStatus, Metrics};
use tlsprof_outlet::watch::{Bounds, SharedWatch, Watch};

/// How often services are judged: the least common time between scrapes.
const FINDINGS_PERIOD: Duration = Duration::from_secs(15);

/// `load` reads the configuration.
pub(super) fn run(
    options: &AgentOptions,
    load: &dyn Fn() -> Result<Config>,
    notices: Notices,
) -> Result<ExitCode> {
    let config = &load()?;
    let stop = stop_flag()?;
    let mut reload = Reload::new(load, config.clone())?;
    // Before there are other threads, which have what their parent has.
    privilege::keep_only(STARTING).context(PRIVILEGES)?;
    let selection = if options.services.is_empty() {
        Selection::All
    } else {
        Selection::Named(options.services.clone())
    };
    let session_options = session_options(config, selection, Purpose::Watch);
    let ledger = new_ledger(config);
    let watch = Watch::new(SharedLedger::clone(&ledger), about()?, Bounds::default());
    let shown = Shown {
        metrics: Arc::new(Metrics::new(&ledger)),
        watch: SharedWatch::new(watch.into()),
    };
    // First: a wrong file or a port in use is reported before any probe is attached.
    let server = serve(options, config, &shown)?;
    let capabilities = doctor::diagnose(config).capabilities;
    let session = Session::start(&session_options, ledger)?;
    privilege::keep_only(Kept::default()).context(PRIVILEGES)?;
    notices.say(format_args!("profiling {}", session.coverage()));
    notices.say(format_args!("listening on {}", server.url()));
    notices.say(format_args!("live page on {}", server.page()));
    let renew = |monitor: &Monitor| {
        let status = status(&monitor.session, &capabilities);
        shown.metrics.set_agent(status);
        shown.metrics.set_findings(locked(&shown.watch).findings());
    };
    let watch = SharedWatch::clone(&shown.watch);
    let mut monitor = Monitor::new(session, watch, config, FINDINGS_PERIOD);
    monitor.show();
    renew(&monitor);
    server.set_ready();
    service_manager::ready();
    while !stop.load(Ordering::Relaxed) {
        if shown.metrics.renewal().is_wanted() {
            monitor.session.hasten();
        }
        if monitor.turn(|service, evidence| shown.metrics.observe(service, evidence))? {
            renew(&monitor);
            shown.metrics.renewal().made();
        }
        if let Some(config) = reload.take(notices) {
            monitor.reconfigure(config);
        }
    }
    service_manager::stopping();
    server.stop();
    Ok(ExitCode::SUCCESS)
}

fn serve(options: &AgentOptions, config: &Config, shown: &Shown) -> Result<Server> {
    let file = options.web_config.as_ref();
    let access = match file.or(config.agent.web_config.as_ref()) {
        // The thread that serves reads it again, and has no privileges.
        Some(file) => privilege::without(|| Access::from_file(file)).context(PRIVILEGES)??,
        None => Access::open(),
    };
    let address = options.listen.unwrap_or(config.agent.listen);
    if !address.ip().is_loopback() && !access.is_protected() {
        tracing::warn!(
            "anyone who can reach {address} can read the metrics and the live page: set up TLS and \
             passwords with --web-config or agent.web_config, or let a firewall admit only your \
             Prometheus"
        );
    }
    Ok(Server::start(address, shown, access)?)
}

fn status(session: &Session, capabilities: &[Capability]) -> AgentStatus {
    let cost = session.cost();
    AgentStatus {
        cpu: Duration::from_secs_f64(cost.cpu_seconds),
        resident_memory_bytes: cost.memory_bytes,
        process: Some(own::status),
        bpf_run: Duration::from_secs_f64(cost.bpf_run_seconds),
        bpf_runs: cost.bpf_runs,
        probe_hits: cost.probe_hits,
        target_cost: Duration::from_secs_f64(cost.target_seconds),
        events_lost: session.loss_counts(),
        capabilities: capabilities.to_vec(),
        step_duty_ratio: session.step_duty_ratio(),
        library_duty_ratio: session.library_duty_ratio(),
        calls_duty_ratio: session.calls_duty_ratio(),
        profiled_images: session.profiled_images() as u64,
        services: session.service_count() as u64,
        load_tests: load_tests(),
    }
}

/// Load tests of reports on this host; nothing where that cannot be read.
fn load_tests() -> LoadTests {
    load_test::look(Path::new(load_test::PATH)).unwrap_or_else(|error| {
        tracing::debug!("cannot read {}: {error}", load_test::PATH);
        LoadTests::default()
    })
}
