//! Findings on the profile, with a calibration where a prediction needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Session;
use crate::advise::{Calibration, Calibrations, Finding, Thresholds, advise};
use crate::calibrate::{calibrate, trust};
use crate::outlet::report::ServiceFacts;

/// Libraries that are calibrated at most: each takes a second of CPU time.
const LIBRARIES: usize = 3;

impl Session {
    /// What is wrong, and what a change would save. May take some seconds, where it
    /// calibrates.
    pub fn findings(
        &self,
        services: &BTreeMap<String, ServiceFacts>,
        elapsed: Duration,
        thresholds: Thresholds,
    ) -> Vec<Finding> {
        let executable = |name: &str| {
            let known = services.get(name);
            known.map_or("", |service| service.executable.as_str())
        };
        let find = |calibrations: &Calibrations| {
            advise(
                &self.ledger(),
                calibrations,
                executable,
                elapsed,
                thresholds,
            )
        };
        let findings = find(&Calibrations::new());
        let wanting = findings.iter().filter(|one| one.wants_calibration());
        let names: BTreeSet<String> = wanting.map(|one| one.service.clone()).collect();
        if names.is_empty() {
            return findings;
        }
        find(&self.calibrations(names))
    }

    fn calibrations(&self, names: BTreeSet<String>) -> Calibrations {
        let mut done: BTreeMap<PathBuf, Result<Calibration, String>> = BTreeMap::new();
        let calibrations = names.into_iter().map(|name| {
            let result = self.libcrypto_of(&name).and_then(|path| {
                if done.len() >= LIBRARIES && !done.contains_key(&path) {
                    return Err("enough others were calibrated".to_owned());
                }
                let timed = done.entry(path).or_insert_with_key(|path| calibrate(path));
                timed.clone()
            });
            (name, result)
        });
        calibrations.collect()
    }

    /// The libcrypto of a service, if it may be loaded.
    fn libcrypto_of(&self, service: &str) -> Result<PathBuf, String> {
        let services = self.table.services();
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
        let root = self.proc.root_of(*process);
        trust::check(&root, &mapping.path, mapping.inode)
    }
}
