//! Load tools: what their arguments ask of the server, and how many requests they report.
//!
//! Sources: `ab.c` of Apache httpd 2.4, `wrk.c` of wrk 4.2, `h2load.cc` of nghttp2 1.52,
//! `requester/print.go` of hey 0.1, `printer.rs` of oha 1.4, `summary.js` of k6 0.50 to 1.0. What ab, wrk,
//! h2load, oha 1.16 and k6 1.8 print themselves is read in `tests/e2e/test_requests.py`.

use std::ffi::OsString;
use std::path::Path;

/// Programs that run another one: the tool may be behind them.
const WRAPPERS: [&str; 9] = [
    "taskset", "nice", "ionice", "chrt", "numactl", "timeout", "env", "sudo", "stdbuf",
];
/// Options of ab that take a value.
const AB_WITH_VALUE: &str = "nctsbTpuvxyzCHPAgXeBmZfE";

/// A load tool whose summary is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Ab,
    Wrk,
    H2load,
    Hey,
    Oha,
    K6,
}

/// A load tool with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadTool {
    tool: Tool,
    arguments: Vec<String>,
}

impl LoadTool {
    /// The load tool that this command runs, if it runs one.
    pub fn of(command: &[OsString]) -> Option<Self> {
        let wrapped = command.first().and_then(name);
        let wrapped = wrapped.is_some_and(|first| WRAPPERS.contains(&first));
        let mut candidates =
            command
                .iter()
                .enumerate()
                .take(if wrapped { command.len() } else { 1 });
        let (at, tool) =
            candidates.find_map(|(at, argument)| Some((at, tool(name(argument)?)?)))?;
        let arguments = command.iter().skip(at + 1);
        Some(Self {
            tool,
            arguments: arguments
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
        })
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self.tool {
            Tool::Ab => "ab",
            Tool::Wrk => "wrk",
            Tool::H2load => "h2load",
            Tool::Hey => "hey",
            Tool::Oha => "oha",
            Tool::K6 => "k6",
        }
    }

    /// Whether it draws its progress where standard output is a terminal: it is then left to
    /// draw, and its summary is not read.
    pub(crate) const fn draws(&self) -> bool {
        matches!(self.tool, Tool::Oha | Tool::K6)
    }

    /// How it asks the server to close each connection after one request; None if it does not.
    pub(crate) fn closes(&self) -> Option<&'static str> {
        if self.arguments.iter().any(|one| is_close_header(one)) {
            return Some("the load tool sends `Connection: close`");
        }
        let has = |option: &str| self.arguments.iter().any(|one| one == option);
        match self.tool {
            Tool::Ab if !keeps_alive(&self.arguments) => {
                Some("`ab` without `-k` sends HTTP/1.0 requests and asks for the close")
            }
            Tool::Hey if has("-disable-keepalive") || has("--disable-keepalive") => {
                Some("`hey -disable-keepalive` sends `Connection: close`")
            }
            Tool::Oha if has("--disable-keepalive") => {
                Some("`oha --disable-keepalive` sends `Connection: close`")
            }
            Tool::K6 if has("--no-connection-reuse") => {
                Some("`k6 --no-connection-reuse` sends `Connection: close`")
            }
            _ => None,
        }
    }

    /// The port of the URL that it requests; None where it is not among the arguments. Most tools
    /// want it last.
    pub fn port(&self) -> Option<u16> {
        self.arguments.iter().rev().find_map(|one| port(one))
    }

    /// Requests that were answered, by what it printed; None where it does not say.
    pub fn requests(&self, printed: &str) -> Option<u64> {
        let mut lines = printed.lines().rev().map(str::trim);
        let count = match self.tool {
            Tool::Ab => lines.find_map(|line| number(line.strip_prefix("Complete requests:")?)),
            Tool::Wrk => lines.find_map(|line| number(line.split_once(" requests in ")?.0)),
            Tool::H2load => lines.find_map(|line| {
                let counts = line.strip_prefix("requests:")?.split(',');
                counts
                    .filter_map(|part| number(part.trim().strip_suffix(" done")?))
                    .next()
            }),
            Tool::Hey | Tool::Oha => Some(lines.filter_map(of_status).sum()),
            Tool::K6 => lines.find_map(|line| {
                let (dots, counts) = line.strip_prefix("http_reqs")?.split_once(':')?;
                let number = number(counts.split_whitespace().next()?);
                number.filter(|_| dots.bytes().all(|dot| dot == b'.'))
            }),
        };
        count.filter(|count| *count > 0)
    }
}

fn name(argument: &OsString) -> Option<&str> {
    Path::new(argument).file_name()?.to_str()
}

fn tool(name: &str) -> Option<Tool> {
    Some(match name {
        "ab" => Tool::Ab,
        "wrk" | "wrk2" => Tool::Wrk,
        "h2load" => Tool::H2load,
        "hey" => Tool::Hey,
        "oha" => Tool::Oha,
        "k6" => Tool::K6,
        _ => return None,
    })
}

/// The port of `https://host:port/path`.
fn port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let default = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    match authority.rsplit_once(':') {
        // `[::1]` and `user:password@host` have none.
        Some((_, port)) if !port.contains([']', '@']) => port.parse().ok(),
        _ => Some(default),
    }
}

/// `-H 'Connection: close'`, also in one word with its option.
fn is_close_header(argument: &str) -> bool {
    let argument = argument.to_ascii_lowercase();
    let header = argument
        .rsplit_once("connection:")
        .filter(|(before, _)| ["", "-h", "--header="].contains(before));
    header.is_some_and(|(_, value)| value.trim() == "close")
}

/// Whether ab is given `-k`, alone or among other letters.
fn keeps_alive(arguments: &[String]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(letters) = argument.strip_prefix('-') else {
            return false;
        };
        for (at, letter) in letters.char_indices() {
            if letter == 'k' {
                return true;
            }
            if AB_WITH_VALUE.contains(letter) {
                if at + letter.len_utf8() == letters.len() {
                    arguments.next();
                }
                break;
            }
        }
    }
    false
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `[200] 1000 responses`.
fn of_status(line: &str) -> Option<u64> {
    let (status, rest) = line.strip_prefix('[')?.split_once(']')?;
    status.parse::<u16>().ok()?;
    number(rest.trim().strip_suffix(" responses")?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn of(command: &str) -> Option<LoadTool> {
        let words: Vec<OsString> = command
            .split(' ')
            .map(|word| word.replace('_', " ").into())
            .collect();
        LoadTool::of(&words)
    }

    #[test]
    fn a_load_tool_is_known_by_its_name_also_behind_a_wrapper() {
        for (command, name) in [
            ("ab -n 10 https://localhost/", "ab"),
            ("/usr/bin/wrk https://localhost/", "wrk"),
            ("taskset -c 1 h2load https://localhost/", "h2load"),
            ("timeout 10 nice hey https://localhost/", "hey"),
        ] {
            assert_eq!(of(command).map(|tool| tool.name()), Some(name), "{command}");
        }
        for command in ["curl ab", "sh -c ab", "taskset -c 1 curl", "abc"] {
            assert_eq!(of(command), None, "{command}");
        }
        assert_eq!(LoadTool::of(&[]), None);
    }

    #[test]
    fn a_tool_that_asks_to_close_is_known_by_its_arguments() {
        for command in [
            "ab -n 10 -c 2 https://localhost/",
            "ab -n 10 -H X:k https://localhost/k",
            "ab -nk https://localhost/",
            "ab -k -H Connection:_close https://localhost/",
            "wrk -H connection:close https://localhost/",
            "wrk --header=Connection:_close https://localhost/",
            "h2load --h1 -HConnection:_close https://localhost/",
            "hey -disable-keepalive https://localhost/",
            "k6 run --no-connection-reuse script.js",
        ] {
            assert!(of(command).unwrap().closes().is_some(), "{command}");
        }
        for command in [
            "ab -k -n 10 https://localhost/",
            "ab -n 10 -qk https://localhost/",
            "ab -n10k -k https://localhost/",
            "wrk -H Connection:_keep-alive https://localhost/",
            "wrk -H X-Connection:_close https://localhost/",
            "h2load -n 10 https://localhost/",
            "oha https://localhost/",
        ] {
            assert_eq!(of(command).unwrap().closes(), None, "{command}");
        }
    }

    #[test]
    fn the_port_is_that_of_the_url() {
        for (command, port) in [
            ("ab -n 10 https://gw/", Some(443)),
            ("ab -n 10 http://gw/a?at=http://b:1/", Some(80)),
            ("wrk https://localhost:8443 -d 5s", Some(8443)),
            ("h2load -n 10 HTTPS://[::1]/", Some(443)),
            ("h2load -n 10 https://[::1]:8443/", Some(8443)),
            ("hey -x http://proxy:3128 https://gw:444/", Some(444)),
            ("oha https://me:secret@gw/", Some(443)),
            ("oha https://me:secret@gw:8443/", Some(8443)),
            ("wrk -H Referer:_https://gw:1/ unix:/run/gw", None),
            ("k6 run --out influxdb=http://db:8086/load script.js", None),
            ("ab -n 10 https://gw:99999/", None),
        ] {
            assert_eq!(of(command).unwrap().port(), port, "{command}");
        }
    }

    #[test]
    fn requests_are_read_from_the_summary() {
        for (tool, printed, count) in [
            (
                "ab",
                "Complete requests:      1000\nFailed requests:        3\n",
                Some(1000),
            ),
            (
                "wrk",
                "  2 threads\n  12345 requests in 2.00s, 9.93MB read\n",
                Some(12_345),
            ),
            (
                "h2load",
                "requests: 100 total, 100 started, 98 done, 97 succeeded, 1 failed, 2 errored\n",
                Some(98),
            ),
            (
                "hey",
                "Status code distribution:\n  [200]\t197 responses\n  [404]\t3 responses\n",
                Some(200),
            ),
            (
                "oha",
                "Status code distribution:\n  [200] 20 responses\n",
                Some(20),
            ),
            (
                "k6",
                "    http_req_failed................: 0.00%  0 out of 1234\n    http_reqs......................: 1234   1873.221669/s\n",
                Some(1234),
            ),
            ("ab", "Complete requests:      0\n", None),
            ("wrk", "unable to connect to localhost\n", None),
            (
                "hey",
                "Error distribution:\n  [3]\tconnection refused\n",
                None,
            ),
        ] {
            assert_eq!(of(tool).unwrap().requests(printed), count, "{printed}");
        }
    }
}
