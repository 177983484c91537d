"""Metrics that dashboards and rules are ready for, but that this version of the agent does not
serve. A panel over one of them says so when it is empty. Once docs/metrics.md lists a metric, tests
want data from its panels, and it must go from here."""

AWAITED: dict[str, str] = {}
