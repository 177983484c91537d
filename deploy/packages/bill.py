#!/usr/bin/env python3
"""Prints cargo-cyclonedx's bill of materials, cut to what the program is made of.

    bill.py BILL MESSAGES TARGET

`cargo metadata`, which cargo-cyclonedx asks, also names what optional features would bring and
what runs in the compiler only. MESSAGES, of the build with --message-format=json, name what cargo
built for TARGET, which is what it linked. The paths of this machine go, and so do the time and the
random number: bills of one commit are the same.
"""

import json
import os
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def linked(messages: str, target: str) -> set[str]:
    """Ids of the packages that were built for the machine, not for this one."""
    found = set()
    for line in messages.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact":
            if any(f"/{target}/" in file for file in message["filenames"]):
                found.add(message["package_id"])
    return found


def cut(bill: dict[str, Any], ids: set[str]) -> None:
    """Leaves the components with these ids, and what they have to do with each other."""
    own = bill["metadata"]["component"]["bom-ref"]
    named = {component["bom-ref"] for component in bill["components"]} | {own}
    if not ids or ids - named:
        sys.exit(f"bill: cargo-cyclonedx does not name what was built: {sorted(ids - named)}")
    bill["components"] = [one for one in bill["components"] if one["bom-ref"] in ids]
    bill["dependencies"] = [one for one in bill["dependencies"] if one["ref"] in ids]
    for one in bill["dependencies"]:
        one["dependsOn"] = [ref for ref in one.get("dependsOn", []) if ref in ids]


def fold(bill: dict[str, Any]) -> None:
    """Makes one component of the program and the crates of its layers, which are no packages."""
    own = bill["metadata"]["component"]["bom-ref"]
    layers = {one["bom-ref"] for one in bill["components"] if one["bom-ref"].startswith("path+file:")}
    parts = {own} | layers
    needed = {ref for one in bill["dependencies"] if one["ref"] in parts for ref in one["dependsOn"]}
    bill["components"] = [one for one in bill["components"] if one["bom-ref"] not in layers]
    bill["dependencies"] = [one for one in bill["dependencies"] if one["ref"] not in layers]
    for one in bill["dependencies"]:
        if one["ref"] == own:
            one["dependsOn"] = sorted(needed - parts)


def main() -> None:
    bill, messages, target = sys.argv[1:]
    made = json.loads(Path(bill).read_text())
    cut(made, linked(Path(messages).read_text(), target))
    fold(made)
    when = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    made["metadata"]["timestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    del made["serialNumber"]
    text = json.dumps(made, indent=2).replace(str(ROOT), "/tlsprof")
    number = uuid.uuid5(uuid.NAMESPACE_URL, text)
    print(json.dumps({**json.loads(text), "serialNumber": f"urn:uuid:{number}"}, indent=2))


if __name__ == "__main__":
    main()
