"""Servers whose TLS is not a libssl that could be probed: Go, rustls, Java, GnuTLS, NSS, static."""

import json
import shutil
import subprocess
import urllib.request
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Iterator, Optional, Sequence

from .certificates import Certificate
from .paths import PROGRAMS, TESTS, TOOLS
from .processes import Argument, Process, name_of_copy, private_copy
from .servers import START_SECONDS, Server, announcing, on_free_port

NSS_NICKNAME = "own"

JAVA_THREADS = 4

JAVA_21 = TOOLS.parent / "java-21" / "home"
"""That of deploy/packages/tools.sh, beside the distribution's."""

BUILD_SECONDS = 900.0
"""Bound of a build beside others."""

GNUTLS_PRIORITY = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"


@contextmanager
def _ours(program: str, folder: Path, certificate: Certificate, name: Optional[str] = None) -> Iterator[Server]:
    """A server of `tests/servers` that takes a certificate and its key."""
    copy = private_copy(PROGRAMS / program, folder, name)
    with announcing([copy, certificate.cert, certificate.key]) as server:
        yield server


def go(folder: Path, certificate: Certificate, name: Optional[str] = None) -> AbstractContextManager[Server]:
    """net/http, static and stripped."""
    return _ours("go_server", folder, certificate, name)


def rustls(folder: Path, certificate: Certificate, name: Optional[str] = None) -> AbstractContextManager[Server]:
    """rustls on AWS-LC, a thread per connection, stripped."""
    return _ours("rustls-server", folder, certificate, name)


def built(program: str, folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    """A server that only long tests need, built now: `rustls-ring`, `boring-server`. A thread per connection, stripped."""
    files = [f"{PROGRAMS}/{program}{suffix}" for suffix in ("", ".symbols")]
    make = ["make", "--silent", "-C", TESTS, f"OUT={PROGRAMS}", *files]
    subprocess.run(make, check=True, timeout=BUILD_SECONDS)
    return _ours(program, folder, certificate)


@contextmanager
def static_http(
    folder: Path,
    certificate: Certificate,
    tls: str = "any",
    options: Sequence[Argument] = (),
    name: Optional[str] = None,
) -> Iterator[Server]:
    """OpenSSL linked in and stripped, a thread per connection."""
    program = private_copy(PROGRAMS / "http", folder, name)
    with announcing([program, certificate.cert, certificate.key, "--tls", tls, *options]) as server:
        yield server


@contextmanager
def domino(folder: Path, certificate: Certificate, *options: Argument) -> Iterator[Server]:
    """The same where Domino keeps its tasks, named as its task is, with the one version that it speaks."""
    home = folder / "opt" / "hcl" / "domino" / "notes" / "latest" / "linux"
    home.mkdir(parents=True)
    with static_http(home, certificate, "1.2", options, "http") as server:
        yield server


@contextmanager
def java(
    folder: Path,
    certificate: Certificate,
    threads: Optional[int] = None,
    options: Sequence[Argument] = (),
    name: Optional[str] = None,
    home: Optional[Path] = None,
) -> Iterator[Server]:
    """The JDK's HttpsServer: all in the thread that accepts, or in a pool of `threads`. `options`
    are those of the virtual machine. `name`: of its program, where the test needs one. `home`: of
    another JDK than the host's."""
    command = [_private_java(folder, name, home), *options, "-Dsun.net.httpserver.nodelay=true"]
    command += ["-cp", PROGRAMS, "HttpsTestServer", certificate.cert, certificate.key]
    if threads:
        command.append(threads)
    with announcing(command) as server:
        yield server


@contextmanager
def tomcat(folder: Path, certificate: Certificate) -> Iterator[tuple[Server, Server]]:
    """Tomcat with its NIO connectors: with TLS, and without."""
    with _timed_java(folder, "TomcatServer", certificate.cert, certificate.key, folder) as servers:
        yield servers


@contextmanager
def jetty(folder: Path, certificate: Certificate) -> Iterator[tuple[Server, Server]]:
    """Jetty in the same way."""
    store = folder / "own.p12"
    export = ["openssl", "pkcs12", "-export", "-in", certificate.cert, "-inkey", certificate.key]
    subprocess.run([*export, "-out", store, "-passout", "pass:"], check=True, timeout=30)
    with _timed_java(folder, "JettyServer", store) as servers:
        yield servers


@contextmanager
def _timed_java(folder: Path, name: str, *arguments: Argument) -> Iterator[tuple[Server, Server]]:
    """A server of `tests/servers/java`. The simple compiler of the virtual machine is soon done, so that
    the machine itself takes little of the CPU time."""
    subprocess.run(["make", "--silent", "-C", TESTS, f"OUT={PROGRAMS}", "java"], check=True, timeout=300)
    command = [_private_java(folder), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    command += ["-cp", f"{PROGRAMS}/java:{PROGRAMS}/java/*", name, *arguments]
    with Process(command) as process:
        ports = process.wait_for_line("port ", START_SECONDS).split()
        yield Server(int(ports[1]), process), Server(int(ports[3]), process)


def engine_times(plain: Server) -> dict[str, int]:
    """How many TLS engines such a server made, and the nanoseconds of CPU time that their parts took."""
    with urllib.request.urlopen(f"http://127.0.0.1:{plain.port}/times", timeout=10) as answer:
        return json.load(answer)


def _private_java(folder: Path, name: Optional[str] = None, home: Optional[Path] = None) -> Path:
    """The launcher looks for the rest of the JDK beside its own folder."""
    if home is None:
        found = shutil.which("java")
        assert found, "java is not installed"
        home = Path(found).resolve().parents[1]
    copy = folder / "jdk"
    (copy / "bin").mkdir(parents=True)
    for part in ("lib", "conf", "release"):
        (copy / part).symlink_to(home / part)
    return private_copy(home / "bin" / "java", copy / "bin", name or name_of_copy("java", folder))


@contextmanager
def gnutls_serv(
    folder: Path, certificate: Certificate, priority: str = GNUTLS_PRIORITY, answers: str = "http"
) -> Iterator[Server]:
    """`answers`: `http`, or `echo` for what it was sent."""

    def start(port: int) -> Process:
        command = [private_copy("gnutls-serv", folder), f"--{answers}", "--quiet"]
        command += ["--disable-client-cert", "--port", port, "--x509certfile", certificate.cert]
        command += ["--x509keyfile", certificate.key, "--priority", priority]
        return Process(command)

    with on_free_port(start) as server:
        yield server


@contextmanager
def selfserv(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """NSS's own test server, with tickets and DHE."""
    database = _nss_database(folder, certificate)

    def start(port: int) -> Process:
        command = [private_copy("selfserv", folder), "-d", database, "-n", NSS_NICKNAME]
        command += ["-p", port, "-V", "tls1.2:tls1.3", "-t", 8, "-D", "-u", "-H", 1]
        return Process(command)

    with on_free_port(start) as server:
        yield server


def _nss_database(folder: Path, certificate: Certificate) -> str:
    database, bundle = f"sql:{folder / 'nss'}", folder / "own.p12"
    (folder / "nss").mkdir()
    export = ["openssl", "pkcs12", "-export", "-in", certificate.cert, "-inkey", certificate.key]
    for command in (
        [*export, "-name", NSS_NICKNAME, "-passout", "pass:", "-out", bundle],
        ["certutil", "-N", "-d", database, "--empty-password"],
        ["pk12util", "-i", bundle, "-d", database, "-W", "", "-K", ""],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return database
