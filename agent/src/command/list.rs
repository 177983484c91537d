//! `tlsprof list`: the services of this host, and how each would be profiled.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::print::print;
use crate::cli::{Format, ListOptions};
use tlsprof_attach::danger::Dangers;
use tlsprof_attach::error::InspectError;
use tlsprof_attach::registry::{self, Image, Registry, State};
use tlsprof_common::causes::one_line;
use tlsprof_common::privilege;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::host::{Host, other_pid_namespace};
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::table::{ProcessTable, ServiceView};
use tlsprof_outlet::list::{self, LibraryState, ListedLibrary, ListedService};
use tlsprof_outlet::terminal::Style;

pub(super) fn run(options: ListOptions) -> Result<ExitCode> {
    let proc = ProcRoot::default();
    let mut table = ProcessTable::new(proc.clone());
    table.scan()?;
    let ports = ListeningPorts::read(&proc, table.live());
    let mut registry = Registry::new();
    let mut services = Vec::new();
    let mut dangers = Dangers::new(&Host::read()?.kernel);
    for service in table.services() {
        inspect(&mut registry, &mut dangers, &proc, &service);
    }
    let probed = registry.probed();
    for (image, danger) in dangers.among(table.live(), &table, &probed, &proc) {
        registry.refuse(image, danger);
    }
    for service in table.services() {
        let listed = listed(&registry, &service, &ports);
        if options.all || !listed.libraries.is_empty() || !listed.ports.is_empty() {
            services.push(listed);
        }
    }
    list::sort(&mut services);
    let text = match options.form.format {
        Format::Text => list::text(
            &services,
            options.verbose,
            options.all,
            Style::of(&io::stdout()),
        ),
        Format::Json => list::json(&services).context("cannot write the list as JSON")?,
    };
    print(text.as_bytes())?;
    let problem = privilege::explanation().or_else(|| other_pid_namespace().map(str::to_owned));
    if let Some(problem) = problem {
        eprintln!("tlsprof: {problem}");
    }
    Ok(ExitCode::SUCCESS)
}

fn inspect(
    registry: &mut Registry,
    dangers: &mut Dangers,
    proc: &ProcRoot,
    service: &ServiceView<'_>,
) {
    for (pid, mapping) in &service.images {
        if dangers.knows(mapping.image()) {
            continue;
        }
        let opened = mapping.open(proc, *pid).map_err(InspectError::from);
        match opened.and_then(|file| registry::inspect(file, mapping)) {
            Ok(inspected) => {
                dangers.note(mapping.image(), inspected.switches_stacks);
                registry.keep(mapping.image(), inspected);
            }
            Err(error) => {
                let error = one_line(&error);
                tracing::debug!(path = %mapping.path.display(), error, "image left out");
            }
        }
    }
}

fn listed(registry: &Registry, service: &ServiceView<'_>, ports: &ListeningPorts) -> ListedService {
    let images = service
        .images
        .iter()
        .filter_map(|(_, mapping)| registry.get(mapping.image()));
    // A library that is mapped in two versions is two libraries.
    let libraries: BTreeMap<_, _> = images
        .map(|image| (image.path.clone(), library(image)))
        .collect();
    ListedService {
        name: service.name.as_str().to_owned(),
        executable: service.executable.to_owned(),
        pids: service.processes.clone(),
        ports: ports
            .of(service.processes.iter().copied())
            .into_iter()
            .collect(),
        libraries: libraries.into_values().collect(),
    }
}

fn library(image: &Image) -> ListedLibrary {
    let library = image.library.as_ref();
    let state = match &image.state {
        State::NotProfiled(reason) => LibraryState::Unsupported(reason.to_string()),
        State::Found | State::Profiled => LibraryState::Supported(part(image).to_owned()),
    };
    ListedLibrary {
        kind: library
            .map_or("unknown", |found| found.library.name)
            .to_owned(),
        version: library
            .map(|library| library.release().to_owned())
            .unwrap_or_default(),
        path: image.path.clone(),
        state,
        handshakes: library.is_some_and(|found| found.handshakes),
        steps: library.is_some_and(|found| found.steps),
        sites: image
            .plan
            .as_ref()
            .map(|plan| plan.to_string().lines().map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

fn part(image: &Image) -> &'static str {
    match image
        .library
        .as_ref()
        .map(|library| (library.handshakes, library.steps))
    {
        Some((true, true)) => "handshakes and their steps, by probes",
        Some((true, false)) => "handshakes, by probes",
        _ => "steps of handshakes, by probes",
    }
}
