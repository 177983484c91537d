"""What tlsprof says where the kernel keeps to itself what it needs."""

import re

import pytest

from harness.profiler import Report
from test_survival import planned

SPOILT = {
    "truncated": r"/run/truncated is truncated: it has 1000000 of \d{7} bytes",
    "swapped": "/run/swapped has the wrong byte order",
    "cert.pem": "/etc/cert.pem is not type information",
    "none": "cannot read the type information in /run/none.*No such file",
}
"""Files in place of the kernel's types, and what is said of each."""


def states(doctor) -> dict[str, str]:
    return {one["name"]: one["state"] for one in doctor["capabilities"]}


def not_ready(check):
    """What the doctor says of a host that it does not find ready."""
    doctor = check.json()
    assert (check.status, doctor["ready"]) == (1, False), check
    return doctor


def fact(doctor, name: str) -> str:
    (found,) = [one["value"] for one in doctor["host"] if one["name"] == name]
    return found


def test_a_kernel_that_hides_its_types_is_told_with_the_way_out(survivor):
    refused = survivor.checks["hidden"]
    assert refused.status == 1
    assert re.search("does not show its type information.*--btf FILE, or profile.btf", refused.errors)
    doctor = not_ready(survivor.checks["hidden_doctor"])
    assert states(doctor)["openssl_handshakes"] == "unavailable"
    assert fact(doctor, "type information (BTF)").startswith("no")


@pytest.mark.parametrize("file", SPOILT)
def test_a_file_that_is_no_type_information_is_refused(survivor, file):
    refused = survivor.checks[f"types_{file}"]
    assert refused.status == 1
    assert re.search(SPOILT[file], refused.errors), refused.errors


def test_counts_are_exact_with_types_from_a_file(survivor, workload):
    survivor.succeeded("types_profile")
    found = Report(survivor.succeeded("types_report").json())
    (load,) = workload.hardy
    assert found.service("selftimed").outcomes("server") == planned(load)


def test_doctor_says_that_types_are_from_a_file(survivor):
    doctor = survivor.succeeded("types_doctor").json()
    assert "unavailable" not in states(doctor)["openssl_handshakes"]
    assert fact(doctor, "type information (BTF)").endswith("from /run/kernel.btf")


def test_lockdown_is_named_as_the_reason(locked):
    assert "[confidentiality]" in locked.succeeded("lockdown").text
    refused = locked.checks["report"]
    assert refused.status == 1
    assert "locked down for confidentiality" in refused.errors, refused.errors
    doctor = not_ready(locked.checks["doctor"])
    assert fact(doctor, "lockdown") == "confidentiality"
    for name in ("openssl_handshakes", "connections", "cpu_samples"):
        (reason,) = [one.get("reason", "") for one in doctor["capabilities"] if one["name"] == name]
        assert "locked down for confidentiality" in reason, name
