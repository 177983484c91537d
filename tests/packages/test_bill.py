"""The bill of materials: valid, complete, no more than the program is made of, with all notices."""

import copy
import json
import subprocess
import tomllib
import urllib.parse
from collections import defaultdict
from typing import Any

import jsonschema
import pytest

from harness.paths import ROOT
from installation import artifacts

SITE = ROOT / "target/tools/python/lib"
OWN = "tlsprof"


@pytest.fixture(scope="session")
def bill(architecture) -> dict[str, Any]:
    return json.loads(artifacts.one(f"tlsprof_*_{architecture}.cdx.json").read_text())


@pytest.fixture(scope="session")
def validator() -> jsonschema.Draft7Validator:
    """Of CycloneDX's own schema, which refuses fields that it does not know."""
    folder = next(SITE.glob("*/site-packages/cyclonedx/schema/_res"))
    names = (f"{name}.SNAPSHOT.schema.json" for name in ("bom-1.5", "spdx", "jsf-0.82"))
    schemas = {name: json.loads((folder / name).read_text()) for name in names}
    schema = schemas["bom-1.5.SNAPSHOT.schema.json"]
    # They name each other beside themselves.
    store = {urllib.parse.urljoin(schema["$id"], name): each for name, each in schemas.items()}
    resolver = jsonschema.RefResolver.from_schema(schema, store=store)
    return jsonschema.Draft7Validator(schema, resolver=resolver)


def named(bill: dict[str, Any]) -> set[str]:
    return {f"{one['name']} {one['version']}" for one in bill["components"]}


def test_bill_is_valid(bill, validator):
    assert not [error.message for error in validator.iter_errors(bill)]


@pytest.mark.parametrize(
    "wrong", [{"licenses": [{"license": {"id": "MIT-ish"}}]}, {"nmae": "x"}, {"type": "crate"}]
)
def test_a_mistake_would_be_found(bill, validator, wrong):
    other = copy.deepcopy(bill)
    other["components"][0].update(wrong)
    assert list(validator.iter_errors(other))


def test_bill_names_what_was_to_be_linked_and_no_more(bill, architecture):
    """What cargo's resolver says, against what the build did."""
    tree = (artifacts.FOLDER / "common" / f"{architecture}.tree").read_text()
    # "ring v0.17.14", and again "ring v0.17.14 (*)"
    crates = {" ".join(line.split()[:2]).replace(" v", " ") for line in tree.splitlines()}
    # The program's layers are crates of its own.
    crates = {crate for crate in crates if crate != OWN and not crate.startswith((f"{OWN} ", f"{OWN}-"))}
    assert len(crates) > 100
    assert named(bill) == crates
    assert bill["metadata"]["component"]["name"] == OWN


def test_each_is_told_by_its_checksum_and_licence(bill):
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {f"{one['name']} {one['version']}": one.get("checksum") for one in locked}
    for one in bill["components"]:
        name = f"{one['name']} {one['version']}"
        assert [each["content"] for each in one["hashes"]] == [checksums[name]], name
        assert one["purl"] == f"pkg:cargo/{name.replace(' ', '@')}"
        assert one["licenses"], name


def test_each_is_there_for_something(bill):
    """From the program, every component is reached."""
    needs: dict[str, list[str]] = defaultdict(list)
    for one in bill["dependencies"]:
        needs[one["ref"]] = one.get("dependsOn", [])
    waiting, seen = [bill["metadata"]["component"]["bom-ref"]], set()
    while waiting:
        if (ref := waiting.pop()) not in seen:
            seen.add(ref)
            waiting += needs[ref]
    assert {one["bom-ref"] for one in bill["components"]} <= seen


def test_notices_name_every_crate_of_the_bill(bill, architecture, tmp_path):
    package = artifacts.deb(architecture)
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    documents = tmp_path / "usr/share/doc/tlsprof"
    notices = (documents / "THIRD-PARTY").read_text()
    listed = {line.strip().split(": ")[0] for line in notices.splitlines() if ": " in line}
    assert not named(bill) - listed, "in the bill of materials, but without their notices"
    assert "Rust" in (documents / "rust-library.html").read_text()
