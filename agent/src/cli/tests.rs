//! Command lines that are right, and others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use tlsprof_discover::selection::Selection;
use tracing::Level;

use super::form::Form;
use super::report::Target;
use super::*;

fn parsed(arguments: &str) -> Invocation {
    parse_from(arguments.split(' ')).unwrap()
}

fn report(arguments: &str) -> ReportOptions {
    match parsed(arguments).command {
        Command::Report(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    definition().debug_assert();
}

#[test]
fn report_defaults() {
    let options = report("tlsprof report");
    assert_eq!(options.target.selection(), Selection::All);
    assert_eq!(options.until(), Until::Elapsed(Duration::from_secs(30)));
    assert_eq!(
        (options.format(), options.output.output),
        (ReportFormat::Text, None)
    );
}

#[test]
fn the_name_of_the_file_says_the_form_unless_an_option_does() {
    let form = |arguments: &str| report(arguments).format();
    assert_eq!(form("tlsprof report -o a.html"), ReportFormat::Html);
    assert_eq!(form("tlsprof report -o a.htm"), ReportFormat::Html);
    assert_eq!(form("tlsprof report -o a.b/c.json"), ReportFormat::Json);
    for other in ["a", "a.txt", "html", ".html", "a.html.txt", "/dev/stdout"] {
        let arguments = format!("tlsprof report -o {other}");
        assert_eq!(form(&arguments), ReportFormat::Text, "{other}");
    }
    let given = "tlsprof report -o a.html --format json";
    assert_eq!(form(given), ReportFormat::Json);
    let given = "tlsprof report -o a.html --summary";
    assert_eq!(form(given), ReportFormat::Text);
    match parsed("tlsprof compare a.json b.json -o c.html").command {
        Command::Compare(options) => assert_eq!(options.output.format(), ReportFormat::Html),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cpu_breakdown_is_drawn_where_it_is_asked_for() {
    assert_eq!(report("tlsprof report").cpu_breakdown, None);
    let options = report("tlsprof report --cpu-breakdown cpu.svg --output cpu.txt");
    assert_eq!(options.cpu_breakdown, Some("cpu.svg".into()));
    let earlier = report("tlsprof report --flamegraph cpu.svg");
    assert_eq!(earlier.cpu_breakdown, options.cpu_breakdown);
    assert_eq!(options.output.output, Some("cpu.txt".into()));
}

#[test]
fn report_with_a_command_ends_with_it() {
    let options = report("tlsprof report --port 443 --format json -- wrk -d 20s --pid");
    assert_eq!(options.target.selection(), Selection::Port(443));
    let command = ["wrk", "-d", "20s", "--pid"].map(OsString::from).to_vec();
    assert_eq!(options.until(), Until::CommandEnds(&command, None));
    assert_eq!(options.until().length(), None);
    assert_eq!(options.format(), ReportFormat::Json);
}

#[test]
fn a_command_may_have_a_time_limit() {
    let options = report("tlsprof report --duration 5s -- wrk");
    let command = vec![OsString::from("wrk")];
    let limit = Some(Duration::from_secs(5));
    assert_eq!(options.until(), Until::CommandEnds(&command, limit));
    assert_eq!(options.until().length(), None);
}

#[test]
fn options_stand_under_headings_and_the_advanced_ones_last() {
    let help = parse_from(["tlsprof", "report", "--help"])
        .unwrap_err()
        .to_string();
    let headings = [
        "What to profile:",
        "How long:",
        "Output:",
        "Advanced:",
        "Examples:",
    ];
    let places = headings.map(|heading| help.find(&format!("\n{heading}\n")));
    assert!(
        places.is_sorted() && places.iter().all(Option::is_some),
        "{help}"
    );
    assert!(!help.contains("\nOptions:\n"), "{help}");
}

#[test]
fn every_command_has_two_examples() {
    let definition = definition();
    for command in definition
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
    {
        let examples = command.get_after_help().map(ToString::to_string);
        let examples = examples.unwrap_or_default();
        let count = examples.matches("\n  ").count();
        assert!(count >= 2, "{}: {examples}", command.get_name());
    }
}

#[test]
fn commands_on_the_configuration_and_documents() {
    let command = |arguments| parsed(arguments).command;
    assert_eq!(
        command("tlsprof explain"),
        Command::Explain { finding: None }
    );
    let check = Command::Config(ConfigCommand::Check {
        file: Some("a.toml".into()),
    });
    assert_eq!(command("tlsprof config check a.toml"), check);
    assert_eq!(
        command("tlsprof config show"),
        Command::Config(ConfigCommand::Show)
    );
    let man = Command::Man {
        command: vec!["config".into(), "check".into()],
    };
    assert_eq!(command("tlsprof man config check"), man);
    assert!(parsed("tlsprof list --quiet").quiet);
}

#[test]
fn top_watches_everything_every_two_seconds() {
    let options = TopOptions {
        target: Target::default(),
        interval: Duration::from_secs(2),
    };
    assert_eq!(parsed("tlsprof top").command, Command::Top(options));
    let options = TopOptions {
        target: Target {
            port: Some(443),
            ..Target::default()
        },
        interval: Duration::from_secs(60),
    };
    let arguments = "tlsprof top --port 443 --interval 1m";
    assert_eq!(parsed(arguments).command, Command::Top(options));
}

#[test]
fn global_flags_go_before_or_after_the_command() {
    for arguments in [
        "tlsprof --config c.toml --log debug doctor --format json",
        "tlsprof doctor --format json --config c.toml --log debug",
    ] {
        let invocation = parsed(arguments);
        assert_eq!(invocation.config, Some("c.toml".into()));
        assert_eq!(invocation.log, Level::DEBUG);
        let options = DoctorOptions {
            verbose: false,
            form: Form {
                format: Format::Json,
            },
        };
        assert_eq!(invocation.command, Command::Doctor(options));
    }
}

#[test]
fn agent_takes_several_services() {
    let arguments = "tlsprof agent --listen [::1]:9 --web-config w --service a --service b";
    let invocation = parsed(arguments);
    let options = AgentOptions {
        listen: Some("[::1]:9".parse().unwrap()),
        web_config: Some("w".into()),
        services: vec!["a".into(), "b".into()],
    };
    assert_eq!(invocation.command, Command::Agent(options));
}

#[test]
fn wrong_usage_has_exit_status_2() {
    for arguments in [
        "tlsprof",
        "tlsprof profile",
        "tlsprof report --duration soon",
        "tlsprof report --duration 0s",
        "tlsprof report --pid 0",
        "tlsprof report --port 70000",
        "tlsprof report --pid 1 --port 443",
        "tlsprof report --summary --format json",
        "tlsprof config",
        "tlsprof completions",
        "tlsprof report stray",
        "tlsprof report --format xml",
        "tlsprof top --interval 100ms",
        "tlsprof top --interval 2m",
        "tlsprof top --pid 1 --service a",
        "tlsprof agent --listen nowhere",
        "tlsprof list --format html",
        "tlsprof compare",
        "tlsprof compare one.json",
        "tlsprof compare a= b.json",
        "tlsprof compare =a.json b.json",
        "tlsprof compare --noise 5 a.json b.json",
        "tlsprof compare --noise -1% a.json b.json",
        "tlsprof compare --noise NaN% a.json b.json",
        "tlsprof compare --service a= a.json b.json",
    ] {
        let error = parse_from(arguments.split(' ')).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{arguments}");
    }
    let help = parse_from(["tlsprof", "report", "--help"]).unwrap_err();
    assert_eq!(help.exit_code(), 0);
    assert!(help.to_string().contains("Examples:"));
}

#[test]
fn a_wrong_duration_is_explained() {
    let error = parse_from(["tlsprof", "report", "--duration", "30"]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`30` is not a duration, such as `30s`")
    );
}

#[test]
fn reports_to_compare_have_labels_if_the_user_gives_them() {
    let arguments = "tlsprof compare before=1.json ./x=y.json a=b=c.json --service n=m \
                     --noise 2.5% --fail-if-worse --format html";
    let Command::Compare(options) = parsed(arguments).command else {
        panic!("not a comparison");
    };
    let labels: Vec<_> = options
        .reports
        .iter()
        .map(|one| one.label.as_deref())
        .collect();
    assert_eq!(labels, [Some("before"), None, Some("a")]);
    let files: Vec<_> = options
        .reports
        .iter()
        .map(|one| one.file.display().to_string())
        .collect();
    assert_eq!(files, ["1.json", "./x=y.json", "b=c.json"]);
    assert_eq!(
        options.services,
        [tlsprof_report::compare::Pair {
            first: "n".into(),
            others: vec!["m".into()]
        }]
    );
    assert_eq!(
        (options.spread, options.output.format()),
        (0.025, ReportFormat::Html)
    );
    assert!(options.fail_if_worse);
}
