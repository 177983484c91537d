"""The end of the Service dashboard: sources of its figures, and how reliable they are."""

from typing import Any

from . import figures, thresholds
from .frame import Row
from .panels import PER_SECOND, SHARE, Query, course
from .queries import Source, each_of, ratio, total
from .text import Text

ONE = Source()

NO_HANDSHAKE = "The service completed no TLS handshake in this time range."
NO_SAMPLES = (
    "The service used no CPU time, or CPU samples are unavailable: run `tlsprof doctor` on the host"
    " (cpu_samples)."
)


def by_host(check: str) -> str:
    """A check of the service's CPU account: the largest, where a host has several series."""
    return f"max by (cluster, instance) ({ONE.value(check)})"


def _sources() -> list[Any]:
    agreement = ratio(
        total(ONE.rate("tlsprof_agreement_cpu_seconds_total", 'source="socket"')),
        total(ONE.rate("tlsprof_agreement_cpu_seconds_total", 'source="library"')),
    )
    steps = ONE.rate("tlsprof_agreement_step_cpu_seconds_total")
    steps = each_of(total(steps, "step", "source"), total(steps, "source"), "source")
    by_source = total(ONE.rate("tlsprof_handshakes_by_source_total"), "role", "source")
    offloaded = total(ONE.rate("tlsprof_handshakes_offloaded_total"))
    return [
        course(
            "Handshakes by source",
            Text(
                "Handshakes per second by source: probes in the TLS library, or socket calls."
                " `offloaded`: a different thread answered than the one that read, and other threads"
                " may have worked in between, so their CPU time is a lower bound.",
                "library, which also measures steps; socket if the library has no symbols.",
                "`tlsprof list` shows why a service is not probed. With offloaded handshakes, CPU in"
                " handshakes may be too low.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            Query(by_source, "{{role}}: {{source}}"),
            Query(offloaded, "offloaded"),
            size=(8, 7),
        ),
        course(
            "Agreement of the sources",
            Text(
                "CPU time of the same handshakes from socket calls, relative to library probes.",
                "0.9 to 1.1.",
                "Far from 1: the service reads from other sockets during a handshake, or hands it to"
                " other threads. In that case trust the library.",
                "No handshake was measured by both sources: the service has no probed library, or made"
                " no handshake.",
            ),
            SHARE,
            Query(agreement, "socket / library"),
            size=(8, 7),
        ),
        course(
            "Agreement of steps",
            Text(
                "Share of each step in the CPU time of the same handshakes, by library probes and by CPU samples."
                " Steps joined by + run the same code: their samples may belong to either step.",
                "The two lines of each step within 5 points, or what is between them in a row joined by +.",
                "Samples below probes: code around a step's arithmetic is not identified and counts as other."
                " Services without probes but with the same TLS library have steps that are as much too low.",
                "Library probes did not measure the steps of all handshakes of the service in this time range, or"
                " there were no CPU samples.",
            ),
            SHARE,
            Query(steps, "{{step}}: {{source}}"),
            size=(8, 7),
        ),
    ]


def _samples() -> list[Any]:
    unclassified = ratio(
        total(ONE.rate("tlsprof_cpu_samples_unclassified_total")),
        total(ONE.rate("tlsprof_cpu_samples_total")),
    )
    return [
        course(
            "CPU time without a sample",
            Text(
                "Deviation of the sum of activities from the kernel's accounting in the last minute, by"
                " host.",
                "Below 5%. More if the service uses hardly any CPU, until the next sample.",
                "Above 20%, do not rely on shares by activity. `tlsprof doctor` shows whether sampling"
                " works.",
                NO_SAMPLES,
            ),
            SHARE,
            Query(by_host("tlsprof_cpu_reconciliation_error_ratio"), "{{instance}}"),
            limits=thresholds.RECONCILIATION,
            size=(8, 7),
        ),
        course(
            "Sampled",
            Text(
                "CPU time covered by samples in the last minute, as a share of the kernel's accounting,"
                " by host.",
                "Around 100%; with n samples, the standard error is 1 / sqrt(n).",
                "Below: samples are lost. Above: processes are so short that the kernel does not"
                " account for all of their time; shares are right, but sums too low.",
                NO_SAMPLES,
            ),
            SHARE,
            Query(by_host("tlsprof_cpu_sampled_ratio"), "{{instance}}"),
            size=(8, 7),
        ),
        course(
            "Unclassified samples",
            Text(
                "Share of samples in kernel functions that tlsprof does not know. They count as"
                " application.",
                "Below 5%.",
                "Above: application includes kernel work that may belong elsewhere. Please report the"
                " kernel version.",
                NO_SAMPLES,
            ),
            SHARE,
            Query(unclassified, "unclassified"),
            size=(8, 7),
        ),
    ]


def row() -> Row:
    return Row(
        "Sources of these figures",
        collapsed=True,
        panels=[*_sources(), *_samples()],
    )
