//! What the help of each command ends with.

pub(super) const PROGRAM: &str = "\
Examples:
  sudo tlsprof doctor                 is this host ready?
  sudo tlsprof list                   which services can be profiled, and how?
  sudo tlsprof report                 profile all of them for 30 seconds
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/
                                      profile while a load test runs
  tlsprof explain slow-key-exchange   what a finding means, and what to change
  tlsprof compare before.json after.json
                                      what changed, and is it significant?
  sudo tlsprof top                    watch them in the terminal
  sudo tlsprof agent                  serve Prometheus metrics

`tlsprof man COMMAND` shows more on a command.";

pub(super) const DOCTOR: &str = "\
Examples:
  sudo tlsprof doctor                 is this host ready, and what works on it?
  sudo tlsprof doctor --format json | jq .ready
                                      for scripts, as is the exit status";

pub(super) const LIST: &str = "\
Examples:
  sudo tlsprof list                   services that listen, best profiled first
  sudo tlsprof list --all --verbose   all programs, with files and probe sites";

pub(super) const REPORT: &str = "\
Examples:
  sudo tlsprof report --duration 2m --service nginx
  sudo tlsprof report --summary       a line for each finding and service
  sudo tlsprof report --format json --output profile.json
  sudo tlsprof report --output profile.html
  sudo tlsprof report --service nginx --cpu-breakdown nginx.svg
  sudo tlsprof report --port 443 -- wrk -d 20s https://localhost/
  sudo tlsprof report --duration 60s -- ./load-test.sh
                                      while it runs, 60 seconds at most";

pub(super) const TOP: &str = "\
Examples:
  sudo tlsprof top                    all services, figures every 2 seconds
  sudo tlsprof top --port 443         the service that listens on port 443
  sudo tlsprof top --interval 10s     steadier figures under low load
  ssh -t web1 sudo tlsprof top        on another host

Keys: arrows select and sort, Enter opens a service, ? shows all keys. Colours follow the
terminal's theme; NO_COLOR=1 disables them.";

pub(super) const COMPARE: &str = "\
Examples:
  tlsprof compare before.json after.json
  tlsprof compare before=run1.json before=run2.json before=run3.json \\
                  after=run4.json after=run5.json after=run6.json
                                      repeats show the run-to-run variation
  tlsprof compare gcm.json ccm.json chacha20.json cbc.json
                                      a matrix; all are compared with the first
  tlsprof compare --service nginx=apache2 nginx.json apache.json
  tlsprof compare --fail-if-worse main.json change.json
                                      exit status 1 if a figure is worse: for CI

Create reports with `tlsprof report --format json --output FILE`.";

pub(super) const EXPLAIN: &str = "\
Examples:
  tlsprof explain                     all findings, a line for each
  tlsprof explain slow-key-exchange   what it means, and what to change";

pub(super) const AGENT: &str = "\
Examples:
  sudo tlsprof agent
  sudo tlsprof agent --listen 0.0.0.0:9843 --service nginx
  curl http://127.0.0.1:9843/metrics";

pub(super) const CONFIG: &str = "\
Examples:
  tlsprof config check                is /etc/tlsprof/tlsprof.toml valid?
  tlsprof config check tlsprof.toml   the same for another file
  tlsprof config show                 all settings, and which of them are defaults";

pub(super) const COMPLETIONS: &str = "\
Examples:
  source <(tlsprof completions bash)  for this shell
  tlsprof completions fish > ~/.config/fish/completions/tlsprof.fish";

pub(super) const MAN: &str = "\
Examples:
  tlsprof man report                  read the page in the terminal
  tlsprof man > tlsprof.1             write it, for a packager";
