"""Links from cells and figures: they keep the selected time and the variables."""

from typing import Any, Sequence

from .text import REPOSITORY

Link = dict[str, Any]

HOSTS = ("datasource", "cluster", "job", "instance")


def _board(title: str, uid: str, kept: Sequence[str], *more: str, time: str = "${__url_time_range}") -> Link:
    query = [time, *(f"${{{name}:queryparam}}" for name in kept), *more]
    return {"title": title, "url": f"/d/{uid}?{'&'.join(query)}", "targetBlank": False}


def link_to(title: str, uid: str, **variables: str) -> Link:
    """From a cell; some variables are set from fields of the row."""
    kept = [name for name in HOSTS if name not in variables]
    return _board(title, uid, kept, *(f"var-{name}=${{__data.fields.{field}}}" for name, field in variables.items()))


def link_of_series(title: str, uid: str, *labels: str) -> Link:
    """From a figure; the variables of these names are set from the labels of its series."""
    return _board(title, uid, HOSTS, *(f"var-{label}=${{__field.labels.{label}}}" for label in labels))


def link_to_panel(title: str, uid: str, variables: Sequence[str], number: int) -> Link:
    """To one panel of the same dashboard, alone, also where its row is collapsed."""
    return _board(title, uid, variables, f"viewPanel={number}")


def link_to_time(title: str, uid: str, begin: str, end: str) -> Link:
    """From a cell; selects the row's time, of columns in milliseconds since 1970."""
    return _board(title, uid, HOSTS, time=f"from=${{__data.fields.{begin}.numeric}}&to=${{__data.fields.{end}.numeric}}")


def link_to_page(title: str, folder: str) -> Link:
    """To the page of the documentation that has the cell's text as its name."""
    url = f"{REPOSITORY}/docs/{folder}/${{__value.raw}}.md"
    return {"title": title, "url": url, "targetBlank": True}
