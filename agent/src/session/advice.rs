//! Findings on the profile, with a calibration where a prediction needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::shared::read;
use super::targets::Targets;
use crate::calibrate::{calibrate, trust};
use tlsprof_advise::{
    Calibration, Calibrations, Finding, Setting, THIS_HOST, Thresholds, Work, advise,
};
use tlsprof_ledger::SharedLedger;
use tlsprof_report::ServiceFacts;

/// Calibrations at most: each takes up to a second of CPU time.
const CALIBRATIONS: usize = 4;

/// What is wrong, and what a change would save. May take some seconds, where it
/// calibrates.
pub(super) fn findings(
    ledger: &SharedLedger,
    targets: &Targets,
    services: &BTreeMap<String, ServiceFacts>,
    setting: Setting,
    thresholds: Thresholds,
) -> Vec<Finding> {
    let about = |name: &str| services.get(name).map(ServiceFacts::about);
    let find = |calibrations: &Calibrations| {
        let ledger = read(ledger);
        advise(&ledger, calibrations, about, setting, thresholds)
    };
    let findings = find(&Calibrations::new());
    let wanting = findings.iter().filter_map(|one| {
        let work = one.wants_calibrated()?;
        Some((one.service.clone(), work))
    });
    let wanted: BTreeSet<(String, Work)> = wanting.collect();
    if wanted.is_empty() {
        return findings;
    }
    find(&calibrations(targets, wanted))
}

fn calibrations(targets: &Targets, wanted: BTreeSet<(String, Work)>) -> Calibrations {
    let mut done: BTreeMap<(PathBuf, Work), Result<Calibration, String>> = BTreeMap::new();
    let mut calibrations = Calibrations::new();
    let closed = |name: &str| libcrypto_of(targets, name).is_err();
    if wanted
        .iter()
        .any(|(name, work)| *work == Work::PublicKeys && closed(name))
    {
        let host = libcrypto_of_host().and_then(|path| calibrate(&path, Work::PublicKeys));
        calibrations.insert(THIS_HOST.to_owned(), host);
    }
    for (name, work) in wanted {
        let result = libcrypto_of(targets, &name).and_then(|path| {
            let key = (path, work);
            if done.len() >= CALIBRATIONS && !done.contains_key(&key) {
                return Err("calibration limit reached".to_owned());
            }
            let timed = done
                .entry(key)
                .or_insert_with_key(|(path, work)| calibrate(path, *work));
            timed.clone()
        });
        match (calibrations.get_mut(&name), result) {
            // Two kinds of work in one library.
            (Some(Ok(known)), Ok(more)) => known.extend(more),
            (Some(Ok(_)), Err(_)) => {}
            (_, result) => _ = calibrations.insert(name, result),
        }
    }
    calibrations
}

/// Where distributions have the library.
const HOST_LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/aarch64-linux-gnu/libcrypto.so.3",
    "/usr/lib64/libcrypto.so.3",
    "/usr/lib/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.1.1",
    "/usr/lib64/libcrypto.so.1.1",
];

/// The libcrypto of this host, for services that have none of their own.
fn libcrypto_of_host() -> Result<PathBuf, String> {
    let mut paths = HOST_LIBRARIES.iter().map(Path::new);
    let (path, file) = paths
        .find_map(|path| Some((path, std::fs::metadata(path).ok()?)))
        .ok_or("this host has no OpenSSL")?;
    trust::check(Path::new("/"), path, file.ino())
}

/// The libcrypto of a service, if it may be loaded.
fn libcrypto_of(targets: &Targets, service: &str) -> Result<PathBuf, String> {
    let services = targets.table.services();
    let mut found = services.iter().filter(|one| one.name.as_str() == service);
    let service = found.next().ok_or("its processes have ended")?;
    let is_libcrypto = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("libcrypto.so"))
    };
    let mut images = service.images.iter();
    let (process, mapping) = images
        .find(|(_, mapping)| is_libcrypto(&mapping.path))
        .ok_or("it has no libcrypto in a file of its own")?;
    if mapping.deleted {
        return Err("its file was replaced since it was loaded".to_owned());
    }
    let root = targets.proc.root_of(*process);
    trust::check(&root, &mapping.path, mapping.inode)
}
