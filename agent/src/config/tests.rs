#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn error(text: &str) -> String {
    let parsed = Config::parse(text, Path::new("tlsprof.toml"));
    parsed.unwrap_err().to_string()
}

#[test]
fn the_documented_example_is_the_default() {
    let page = include_str!("../../../docs/configuration.md");
    let example = page.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let parsed = Config::parse(example, Path::new("docs/configuration.md")).unwrap();
    assert_eq!(parsed, Config::default());
    // It shows every key, so that none is undocumented.
    let keys = |text: &str| -> Vec<String> {
        let keys = text.lines().filter_map(|line| line.split_once(" = "));
        keys.map(|(key, _)| key.to_owned()).collect()
    };
    assert_eq!(keys(example), keys(&Config::default().written("").unwrap()));
}

#[test]
fn the_configuration_for_domino_holds() {
    let file = include_str!("../../../deploy/domino/tlsprof.toml");
    let parsed = Config::parse(file, Path::new("deploy/domino/tlsprof.toml")).unwrap();
    assert!(parsed.findings.min_handshakes < Config::default().findings.min_handshakes);
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(
        Config::parse("", Path::new("x")).unwrap(),
        Config::default()
    );
}

#[test]
fn errors_name_file_line_and_key() {
    let text = error("[agent]\nlisten = \"127.0.0.1:9843\"\nlissen = 1\n");
    assert!(
        text.starts_with("tlsprof.toml:3: agent.lissen: unknown field `lissen`"),
        "{text}"
    );
    let text = error("# limits\n[limits]\nservices = \"many\"\n");
    assert!(
        text.starts_with("tlsprof.toml:3: limits.services: invalid type"),
        "{text}"
    );
    let text = error("[limits]\nlabel_sets = 0\n");
    assert_eq!(
        text,
        "tlsprof.toml:2: limits.label_sets: must be at least 1"
    );
    let text = error("[agent]\nlisten = \"9843\"\n");
    assert!(text.starts_with("tlsprof.toml:2: agent.listen: `9843` is not an address"));
    let text = error("[profile]\nsteps = \"often\"\n");
    assert!(
        text.contains(":2: profile.steps: unknown variant `often`"),
        "{text}"
    );
    let text = error("[profile]\nkey_derivation_window = \"soon\"\n");
    assert!(
        text.contains("profile.key_derivation_window: `soon` is not a duration"),
        "{text}"
    );
    let text = error("[profil]\n");
    assert!(
        text.starts_with("tlsprof.toml:1: profil: unknown field"),
        "{text}"
    );
    let text = error("a = [\n");
    assert!(text.starts_with("tlsprof.toml:"), "{text}");
    let text = error("[profile]\nkey_derivation_window = \"1m\"\n");
    assert!(
        text.contains(":2: profile.key_derivation_window: the window"),
        "{text}"
    );
}

#[test]
fn a_named_file_must_exist() {
    let missing = Path::new("/nonexistent/tlsprof.toml");
    let text = Config::load(Some(missing)).unwrap_err().to_string();
    assert_eq!(
        text,
        "cannot read the configuration /nonexistent/tlsprof.toml"
    );
}

#[test]
fn durations() {
    let cases = [
        ("30s", 30_000),
        ("2m", 120_000),
        ("500ms", 500),
        ("1h 30m", 5_400_000),
    ];
    for (text, millis) in cases {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_millis(millis)),
            "{text}"
        );
    }
    for text in ["", "0s", "-3s", "30", "s", "400d", "99999999999999h"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}
