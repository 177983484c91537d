"""Metrics that dashboards and rules are ready for, but that this version of the agent does not
serve. A panel over one of them says so when it is empty. Once docs/metrics.md lists a metric, tests
want data from its panels, and it must go from here."""

AWAITED = {
    "tlsprof_cpu_seconds_total": "the CPU ledger: service_name, activity, mode",
    "tlsprof_finding": "1 for each finding that stands: service_name, finding, severity",
    "tlsprof_report_running": "1 while `tlsprof report -- COMMAND` runs on the host",
    "tlsprof_listen_overflows_total": "accept-queue overflows: service_name",
    "tlsprof_accept_queue_length": "connections that wait to be accepted: service_name",
    "tlsprof_accept_queue_limit": "how many may wait: service_name",
}
