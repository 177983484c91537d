"""Steps of handshakes by samples, as a report has them."""

import math

import pytest

from .profiler import Service

PUBLIC_KEY = ("key_exchange", "signing", "verification", "rsa_decryption")


def steps(service: Service) -> dict[str, float]:
    """Shares of handshakes by step; those that samples cannot separate have both names."""
    rows = service.data["sampled_steps"]
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-6), service
    handshake = sum(row["handshake_seconds"] for row in service.data["primitives"])
    assert sum(row["cpu_seconds"] for row in rows) == pytest.approx(handshake, abs=1e-6), service
    for row in rows:
        assert row["share_low"] <= row["share"] <= row["share_high"], row
    return {"+".join(row["steps"]): row["share"] for row in rows}


def measured(service: Service) -> dict[str, float]:
    """Shares by probes."""
    seconds = {row["step"]: row["cpu_seconds"] for row in service.data["steps"]}
    return {step: seconds.get(step, 0.0) / sum(seconds.values()) for step in PUBLIC_KEY}


def agree(found: dict[str, float], exact: dict[str, float], service: Service, points: float) -> None:
    """Asserts that each step is within the points of the exact one, or between these and what it shares with others."""
    assert_agree(found, exact, sum(row["samples"] for row in service.data["sampled_steps"]), points)


def assert_agree(found: dict[str, float], exact: dict[str, float], samples: float, points: float) -> None:
    """The same for shares by so many samples, wherever they come from."""
    points += 1 / math.sqrt(samples)
    for step, share in exact.items():
        alone = found.get(step, 0.0)
        shared = sum(part for name, part in found.items() if step in name.split("+") and name != step)
        assert alone - points <= share <= alone + shared + points, (step, found, exact, samples)
