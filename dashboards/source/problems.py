"""Findings of the agents, and firing alerts."""

from .frame import Row
from .links import link_to, link_to_page
from .queries import HOSTS, Source, labelled, ranked
from .tables import Column, listing
from .text import Text

SEVERITIES = {1: ("high", "red"), 2: ("medium", "orange"), 3: ("low", "dark-yellow"), 4: ("info", "blue")}
WARNINGS = {1: ("critical", "red"), 2: ("warning", "orange"), 3: ("info", "blue")}


def row(services: Source) -> Row:
    """Findings of the selected services, and alerts on them and their hosts."""
    labels = ("service_name", "role", "finding")
    hosts = f"count by ({', '.join(labels)}) ({services.value('tlsprof_finding')})"
    severity = ranked("tlsprof_finding", services, "severity", SEVERITIES, *labels)
    to_service = link_to("Service dashboard", "tlsprof-service", service_name="Service")
    firing = Source((*HOSTS, 'alertname=~"Tlsprof.*"', 'alertstate="firing"'))
    return Row(
        "Findings and alerts",
        [
            listing(
                "Findings",
                Text(
                    "Findings of the last 5 to 10 minutes, most severe first, with the number of hosts that"
                    " have them. Click a finding to open its page.",
                    "Empty, or severity info only.",
                    "docs/findings/README.md lists all findings with evidence, remedy and expected effect."
                    " `tlsprof report` on the host predicts the saving.",
                    "No findings. A finding needs 100 handshakes or connections in the last minutes.",
                ),
                {"service_name": "Service", "role": "Role", "finding": "Finding", "hosts": "Hosts"},
                Column("Severity", labelled(f"({severity})", "hosts", hosts, *labels), words=SEVERITIES),
                links={"Finding": [link_to_page("Evidence and remedy", "findings")], "Service": [to_service]},
                widths={"Role": 80, "Service": 240, "Hosts": 90},
                sort="Severity",
                descending=False,
                first=["Severity"],
                size=(24, 6),
            ),
            listing(
                "Firing alerts",
                Text(
                    "tlsprof alerts that are firing on the selected hosts.",
                    "Empty.",
                    "Click an alert to open its runbook; docs/alerts/README.md lists all.",
                    "No alert is firing, or Prometheus has not loaded tlsprof's rules.",
                ),
                {"alertname": "Alert", "service_name": "Service", "instance": "Host"},
                Column(
                    "Severity",
                    ranked("ALERTS", firing, "severity", WARNINGS, "alertname", "service_name", "instance"),
                    words=WARNINGS,
                ),
                links={"Alert": [link_to_page("Runbook", "alerts")]},
                widths={"Alert": 280},
                sort="Severity",
                descending=False,
                first=["Severity"],
                size=(24, 5),
            ),
        ],
    )
