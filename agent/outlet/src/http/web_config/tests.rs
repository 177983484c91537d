//! The file: what it may say, and what is refused by name.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use rustls::version::{TLS12, TLS13};
use tempfile::TempDir;

use super::*;

const HASH: &str = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG";
const PAIR: &str = "tls_server_config:\n  cert_file: one.crt\n  key_file: one.key\n";

/// A folder with two certificates, `one` and `two`, and their keys.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let at = |end: &str| folder.path().join(format!("{name}.{end}"));
        fs::write(at("crt"), made.cert.pem()).unwrap();
        fs::write(at("key"), made.signing_key.serialize_pem()).unwrap();
    }
    folder
}

fn load_in(folder: &TempDir, text: &str) -> Result<WebConfig, ConfigError> {
    let path = folder.path().join("web.yml");
    fs::write(&path, text).unwrap();
    WebConfig::load(&path, &mut Contents::default())
}

fn load(text: &str) -> WebConfig {
    load_in(&folder(), text).unwrap()
}

fn tls(text: &str) -> Arc<ServerConfig> {
    load(text).tls.unwrap()
}

/// The error, without the folder.
fn error(text: &str) -> String {
    let folder = folder();
    let error = load_in(&folder, text).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

fn suites(config: &ServerConfig) -> Vec<String> {
    let suites = config.crypto_provider().cipher_suites.iter();
    suites.map(|suite| format!("{:?}", suite.suite())).collect()
}

#[test]
fn a_file_that_says_nothing_is_as_none() {
    for text in [
        "",
        "# nothing\n",
        "tls_server_config:\n",
        "tls_server_config: {}\nbasic_auth_users: {}\nhttp_server_config:\n",
    ] {
        let config = load(text);
        assert!(config.tls.is_none() && config.users.is_none(), "{text}");
        assert!(config.headers.is_empty(), "{text}");
    }
}

#[test]
fn all_that_the_toolkit_documents() {
    let config = load(&format!(
        "{PAIR}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: two.crt\n  \
         client_allowed_sans: [two]\n  min_version: TLS12\n  max_version: TLS13\n  \
         cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n  \
         prefer_server_cipher_suites: true\n  curve_preferences: [CurveP384, X25519]\n\
         http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n    \
         X-Content-Type-Options: nosniff\n    Content-Security-Policy: ''\n    \
         Strict-Transport-Security: max-age=60\nbasic_auth_users:\n  al: {HASH}\n  12: '{HASH}'\n"
    ));
    let tls = config.tls.unwrap();
    assert!(tls.ignore_client_order);
    let groups = tls.crypto_provider().kx_groups.iter();
    let groups: Vec<String> = groups.map(|group| format!("{:?}", group.name())).collect();
    assert_eq!(groups, ["secp384r1", "X25519"]);
    let headers: Vec<&str> = config
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let expected = [
        "strict-transport-security",
        "x-content-type-options",
        "x-frame-options",
    ];
    assert_eq!(headers, expected);
    assert!(config.users.is_some());
}

#[test]
fn inline_certificates() {
    let folder = folder();
    let pem = |name: &str| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        text.replace('\n', "\n    ")
    };
    let (cert, key) = (pem("one.crt"), pem("one.key"));
    let text = format!("tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {key}\n");
    assert!(load_in(&folder, &text).unwrap().tls.is_some());
}

#[test]
fn suites_of_each_version_are_chosen_apart() {
    let with = |suites: &str| tls(&format!("{PAIR}  cipher_suites: [{suites}]\n"));
    assert_eq!(suites(&tls(PAIR)).len(), 9);
    let old = suites(&with("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"));
    assert_eq!(old.len(), 4);
    assert_eq!(old.last().unwrap(), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    let both = "TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    assert_eq!(suites(&with(both)).len(), 2);
    assert!(!tls(&format!("{PAIR}  prefer_server_cipher_suites: no\n")).ignore_client_order);
}

#[test]
fn every_name_of_the_tables_is_taken() {
    let all = |names: Vec<&str>| names.join(", ");
    let suites_named = all(names::SUITES.iter().map(|(name, _)| *name).collect());
    let groups_named = all(names::GROUPS.iter().map(|(name, _)| *name).collect());
    let config = tls(&format!(
        "{PAIR}  cipher_suites: [{suites_named}]\n  curve_preferences: [{groups_named}]\n"
    ));
    assert_eq!(
        suites(&config).len(),
        rustls::crypto::ring::ALL_CIPHER_SUITES.len()
    );
    let provider = config.crypto_provider();
    assert_eq!(
        provider.kx_groups.len(),
        rustls::crypto::ring::ALL_KX_GROUPS.len()
    );
    assert_eq!(
        names::VERSIONS.map(|(_, version)| version),
        [&TLS12, &TLS13]
    );
}

#[test]
fn errors_name_file_line_and_key() {
    let cases = [
        (
            "tls_server_confg:\n",
            "web.yml:1: tls_server_confg: unknown field `tls_server_confg`",
        ),
        (
            "# x\ntls_server_config:\n  cert_fil: a\n",
            "web.yml:3: tls_server_config.cert_fil: unknown field `cert_fil`",
        ),
        ("tls_server_config: 5\n", "web.yml:1: tls_server_config: "),
        (
            "basic_auth_users:\n  al: x\n  al: y\n",
            "web.yml:3: basic_auth_users.al: duplicate",
        ),
        (
            "basic_auth_users:\n  al: secret\n",
            "web.yml:2: basic_auth_users.al: is not a bcrypt hash",
        ),
        (
            "basic_auth_users:\n  'a:b': x\n",
            "web.yml:2: basic_auth_users.a:b: a user name cannot contain a colon",
        ),
        (
            "http_server_config:\n  http2: true\n",
            "web.yml:2: http_server_config.http2: HTTP/2 is not supported",
        ),
        (
            "http_server_config:\n  headers:\n    Server: x\n",
            "web.yml:3: http_server_config.headers.Server: cannot be set",
        ),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: no\n",
            "web.yml:3: http_server_config.headers.X-Frame-Options: must be deny or sameorigin",
        ),
        (
            "\nrate_limit:\n  burst: 5\n",
            "web.yml:2: rate_limit: is not supported",
        ),
        ("a: [\n", "web.yml:1: "),
    ];
    for (text, begin) in cases {
        let said = error(text);
        assert!(said.starts_with(begin), "{said}\nnot\n{begin}");
        // Passwords and hashes may be pasted anywhere, so no value is shown.
        assert!(
            !said.contains("secret") && !said.contains(" at line "),
            "{said}"
        );
    }
}

#[test]
fn tls_that_cannot_be_is_refused_by_name() {
    let cases = [
        (
            "min_version: TLS11",
            "min_version: `TLS11` is not supported",
        ),
        (
            "max_version: TLS10",
            "max_version: `TLS10` is not supported",
        ),
        ("min_version: SSL3", "min_version: `SSL3` is not a version"),
        (
            "cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]",
            "cipher_suites: `TLS_RSA_WITH_AES_128_CBC_SHA` is not supported",
        ),
        (
            "curve_preferences: [CurveP521]",
            "curve_preferences: `CurveP521` is not supported",
        ),
        (
            "client_auth_type: RequireAnyClientCert",
            "client_auth_type: is not supported",
        ),
        ("client_auth_type: Maybe", "client_auth_type: must be"),
        (
            "client_auth_type: RequireAndVerifyClientCert",
            "client_auth_type: needs client_ca_file",
        ),
        (
            "client_allowed_sans: [a]",
            "client_allowed_sans: needs client_auth_type",
        ),
        ("client_ca: x", "client_ca: has no certificate in PEM"),
        ("cert: x", "cert_file: cert sets the same"),
    ];
    for (line, begin) in cases {
        let said = error(&format!("{PAIR}  {line}\n"));
        let number = if line == "cert: x" { 2 } else { 4 };
        let begin = format!("web.yml:{number}: tls_server_config.{begin}");
        assert!(said.starts_with(&begin), "{said}\nnot\n{begin}");
    }
    let said = error(&format!(
        "{PAIR}  min_version: TLS13\n  max_version: TLS12\n"
    ));
    assert!(said.starts_with("web.yml:4: tls_server_config.min_version: must not"));
    let said = error(&format!("{PAIR}  client_ca_file: two.crt\n"));
    assert!(
        said.contains("tls_server_config.client_auth_type: must be"),
        "{said}"
    );
    let only_13 = "max_version: TLS12\n  cipher_suites: [TLS_AES_128_GCM_SHA256]";
    let said = error(&format!("{PAIR}  {only_13}\n"));
    let begin = "web.yml:1: tls_server_config: these settings conflict";
    assert!(said.starts_with(begin), "{said}");
}

#[test]
fn files_that_do_not_do() {
    let said = error("tls_server_config:\n  min_version: TLS13\n");
    assert!(
        said.starts_with("web.yml:1: tls_server_config.cert_file: is missing"),
        "{said}"
    );
    let said = error("tls_server_config:\n  cert_file: one.crt\n");
    assert!(
        said.starts_with("web.yml:1: tls_server_config.key_file: is missing"),
        "{said}"
    );
    let with = |cert: &str, key: &str| {
        let said = error(&format!(
            "tls_server_config:\n  cert_file: {cert}\n  key_file: {key}\n"
        ));
        said.strip_prefix("web.yml:")
            .map(str::to_owned)
            .unwrap_or(said)
    };
    let begins = [
        (
            with("no.crt", "one.key"),
            "2: tls_server_config.cert_file: cannot read no.crt: No such",
        ),
        (
            with("/dev/zero", "one.key"),
            "2: tls_server_config.cert_file: cannot read /dev/zero: it is not a regular file",
        ),
        (
            with("one.crt", "two.key"),
            "3: tls_server_config.key_file: does not fit the certificate",
        ),
        (
            with("one.crt", "one.crt"),
            "3: tls_server_config.key_file: has no private key in PEM",
        ),
        (
            with("one.key", "one.key"),
            "2: tls_server_config.cert_file: has no certificate in PEM",
        ),
    ];
    for (said, begin) in begins {
        assert!(said.starts_with(begin), "{said}\nnot\n{begin}");
    }
    let missing = Path::new("/nonexistent/web.yml");
    let error = WebConfig::load(missing, &mut Contents::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the configuration /nonexistent/web.yml"
    );
}

#[test]
fn a_change_of_any_file_is_seen() {
    let folder = folder();
    let path = folder.path().join("web.yml");
    fs::write(&path, PAIR).unwrap();
    let mut contents = Contents::default();
    WebConfig::load(&path, &mut contents).unwrap();
    assert!(!contents.have_changed());
    // Of the same length, at the same time.
    let key = folder.path().join("one.key");
    let old = fs::read(&key).unwrap();
    fs::write(&key, old.to_ascii_lowercase()).unwrap();
    assert!(contents.have_changed());
    fs::write(&key, old).unwrap();
    assert!(!contents.have_changed());
    fs::remove_file(&key).unwrap();
    assert!(contents.have_changed());
    let mut without = Contents::default();
    WebConfig::load(&path, &mut without).unwrap_err();
    assert!(!without.have_changed());
    fs::write(&key, "back").unwrap();
    assert!(without.have_changed());
}
