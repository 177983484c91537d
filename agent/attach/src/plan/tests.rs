//! Plans for the libraries that are installed here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

use std::fs::File;
use std::path::Path;

use super::*;
use crate::registry::points;
use tlsprof_discover::library::{self, Tls};
use tlsprof_discover::sample::installed;
use tlsprof_library::openssl::{Generation, Parts};
use tlsprof_library::spec::{Group, Program};

fn open(path: &Path) -> (ElfView, Found) {
    let image = ElfView::open(File::open(path).unwrap()).unwrap();
    match library::detect(&image).unwrap().tls {
        Tls::Supported(library) => (image, library),
        other => panic!("{}: {other:?}", path.display()),
    }
}

fn parts(generation: Generation, ssl: bool, crypto: bool) -> Found {
    let parts = Parts {
        generation,
        ssl,
        crypto,
    };
    parts.found()
}

fn assert_complete(plan: &Plan, library: &Found) {
    let expected: Vec<&str> = library.functions.iter().map(|f| f.name).collect();
    let found: Vec<&str> = plan.sites.iter().map(|site| site.function.name).collect();
    assert_eq!(found, expected, "{plan}");
    assert!(plan.missing.is_empty(), "{plan}");
}

#[test]
fn installed_libssl_has_all_functions() {
    let (image, library) = open(&installed("libssl.so.3"));
    assert!(library.handshakes && !library.steps);
    assert_eq!(library.edition, "OpenSSL 3 or later");
    let plan = plan(&image, &library).unwrap();
    assert_complete(&plan, &library);
    // The functions have no symbols, yet their ends are known, so that a cheap
    // site can be proven. Only the jumps to libcrypto are single-stepped.
    for site in &plan.sites {
        let import = matches!(site.function.locate, Locate::Import(_));
        assert_eq!(site.placement.emulated, !import, "{plan}");
    }
    assert!(!plan.lacks_imports());
    let told = points(&plan.sites, Group::Handshakes);
    let single_stepped = told.values().flatten().filter(|one| one.single_stepped);
    assert_eq!(single_stepped.count(), 2, "the program is told");
}

#[test]
fn installed_libgnutls_has_all_functions() {
    let (image, library) = open(&installed("libgnutls.so.30"));
    assert!(library.handshakes && !library.steps);
    assert!(library.version.starts_with("GnuTLS 3."), "{library}");
    let plan = plan(&image, &library).unwrap();
    assert_complete(&plan, &library);
    assert!(
        plan.sites.iter().all(|site| site.placement.emulated),
        "{plan}"
    );
}

#[test]
fn libssl_alone_is_probed_where_it_raises_errors() {
    let (image, library) = open(&installed("libssl.so.3"));
    let sites = plan(&image, &library).unwrap().sites;
    let raising = sites
        .iter()
        .filter(|site| site.function.entry == Some(Program::explains("error_raised")));
    let raising: Vec<_> = raising
        .map(|site| (site.function.name, site.function.group))
        .collect();
    let expected = [
        ("ERR_vset_error@plt", Group::Handshakes),
        ("ERR_set_error@plt", Group::Handshakes),
    ];
    assert_eq!(raising, expected);
}

#[test]
fn errors_of_libcrypto_alone_are_a_group_of_their_own() {
    let (image, library) = open(&installed("libcrypto.so.3"));
    let plan = plan(&image, &library).unwrap();
    let of_handshakes = |site: &&Site| site.function.group == Group::Handshakes;
    assert_eq!(plan.sites.iter().filter(of_handshakes).count(), 0, "{plan}");
    assert!(!plan.lacks_imports());
}

#[test]
fn libssl_without_stubs_needs_the_errors_of_libcrypto() {
    let (image, _) = open(&installed("libssl.so.3"));
    let library = parts(Generation::V1_1_1, true, false);
    let plan = plan(&image, &library).unwrap();
    assert!(plan.lacks_imports());
    assert!(
        plan.to_string()
            .contains("ERR_put_error@plt                not probed: it is not imported"),
        "{plan}"
    );
}

#[test]
fn installed_libcrypto_has_all_functions() {
    let (image, library) = open(&installed("libcrypto.so.3"));
    assert!(library.steps && !library.handshakes);
    assert!(library.version.starts_with("OpenSSL 3."), "{library}");
    assert_complete(&plan(&image, &library).unwrap(), &library);
}

#[test]
fn node_holds_both_libraries() {
    let path = Path::new("/usr/bin/node");
    if !path.exists() {
        eprintln!("skipped: {} is not installed", path.display());
        return;
    }
    let (image, library) = open(path);
    assert!(library.handshakes && library.steps);
    assert!(library.version.starts_with("OpenSSL 3."), "{library}");
    assert_complete(&plan(&image, &library).unwrap(), &library);
}

/// Further libraries, for checks by hand: paths with a colon between them.
#[test]
fn libraries_named_in_the_environment_have_all_functions() {
    let paths = std::env::var("TLSPROF_TEST_LIBRARIES").unwrap_or_default();
    for path in paths.split(':').filter(|path| !path.is_empty()) {
        let (image, library) = open(Path::new(path));
        let plan = plan(&image, &library).unwrap();
        println!("{path}: {library}\n{plan}");
        assert_complete(&plan, &library);
    }
}

#[test]
fn missing_required_function_is_named() {
    // libcrypto in the guise of libssl.
    let (image, _) = open(&installed("libcrypto.so.3"));
    let library = parts(Generation::V3, true, true);
    let error = plan(&image, &library).unwrap_err();
    assert!(
        matches!(
            error,
            PlanError::Required {
                function: "ossl_statem_accept",
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn missing_optional_functions_are_listed() {
    let (image, _) = open(&installed("libcrypto.so.3"));
    let library = parts(Generation::V1_1_1, false, true);
    let plan = plan(&image, &library).unwrap();
    let names: Vec<&str> = plan
        .missing
        .iter()
        .map(|missing| missing.function.name)
        .collect();
    assert_eq!(names, ["ERR_put_error"]);
    assert!(
        plan.to_string()
            .contains("not probed: no symbol ERR_put_error")
    );
}

#[test]
fn image_without_any_function_has_no_plan() {
    let (image, _) = open(&installed("libssl.so.3"));
    let library = parts(Generation::V3, false, true);
    assert!(matches!(plan(&image, &library), Err(PlanError::Nothing)));
}

#[test]
fn a_site_is_planned_once_per_program() {
    let (image, library) = open(&installed("libcrypto.so.3"));
    let sites = plan(&image, &library).unwrap().sites;
    let programs = |site: &Site| (site.file_offset, site.function.entry);
    let distinct: BTreeSet<(u64, Option<Program>)> = sites.iter().map(programs).collect();
    assert_eq!(distinct.len(), sites.len());
}
