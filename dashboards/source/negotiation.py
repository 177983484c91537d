"""The lower half of the Service dashboard: what is negotiated, resumed and refused."""

from typing import Any, Optional

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from . import colours, figures
from .colours import Colours
from .figures import COMPLETED, HANDSHAKES, SERVER
from .frame import Row
from .panels import PER_SECOND, SHARE, Query, course
from .queries import Source, each_of, or_none, total
from .text import Text

ONE = Source()
NO_HANDSHAKE = "The service completed no TLS handshake in this time range."


def _mix(title: str, label: str, good: str, remedy: str, fixed: Optional[Colours] = None, width: int = 12) -> Any:
    query = total(ONE.rate(HANDSHAKES, SERVER, COMPLETED), label)
    shows = f"Completed handshakes per second as server, by {title.lower()}."
    return course(
        title,
        Text(shows, good, remedy, NO_HANDSHAKE),
        PER_SECOND,
        Query(query, f"{{{{{label}}}}}"),
        stacked=True,
        size=(width, 7),
        colours=fixed,
        # TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 beside the areas would leave no room for them.
        legend_below=label == "cipher",
    )


def negotiated() -> Row:
    return Row(
        "Negotiated parameters",
        [
            _mix(
                "Version",
                "version",
                "TLS1.3.",
                "TLS 1.2 needs one more round trip to the client. Enable TLS 1.3 if clients offer it.",
                colours.VERSIONS,
            ),
            _mix(
                "Key exchange group",
                "group",
                "x25519, or X25519MLKEM768 for post-quantum security; `none` is a resumption without key"
                " exchange.",
                "secp384r1, secp521r1 and ffdhe cost more: put X25519 first (nginx: ssl_ecdh_curve).",
            ),
            _mix(
                "Signature",
                "signature",
                "ecdsa_p256 or ed25519; `none` in resumed handshakes.",
                "RSA signatures cost several times as much as ECDSA, and more the longer the key. Offer an"
                " ECDSA certificate beside the RSA one. `unknown`: TLS 1.3 encrypts the certificate, and"
                " the step probes are detached.",
            ).override_by_name("unknown", [DynamicConfigValue("displayName", "unknown (TLS 1.3)")]),
            _mix(
                "Cipher suite",
                "cipher",
                "AES-GCM if the CPU has AES instructions, otherwise ChaCha20-Poly1305.",
                "CBC suites with HMAC cost more per byte: disable them, or list them last.",
            ),
        ],
    )


def resumption() -> Row:
    attempts = total(ONE.rate("tlsprof_resumption_attempts_total", SERVER), "attempt")
    return Row(
        "Resumption",
        [
            _mix(
                "Resumption",
                "resumption",
                "psk (TLS 1.3), ticket or session_id make most of them.",
                "Many `none` although clients return: see Attempts to resume.",
                colours.RESUMPTION,
                width=8,
            ),
            course(
                "Attempts to resume",
                Text(
                    "ClientHellos per second, by result of the resumption attempt.",
                    "Mostly accepted, hardly any refused.",
                    "refused: the cache is too small, its timeout too short, or ticket keys differ between"
                    " workers or hosts. not_offered: clients have no session to offer; check that tickets are"
                    " enabled.",
                    "No ClientHello was read in this time range.",
                ),
                PER_SECOND,
                Query(attempts, "{{attempt}}"),
                stacked=True,
                colours=colours.ATTEMPTS,
                size=(8, 7),
            ),
            course(
                "Refused sessions",
                Text(
                    "Share of ClientHellos whose session was refused: each costs an avoidable full"
                    " handshake.",
                    "Below 5%.",
                    "Enlarge and share the session cache (nginx: ssl_session_cache shared), or share ticket"
                    " keys between hosts.",
                    "No ClientHello was read in this time range.",
                ),
                SHARE,
                Query(figures.refused_share(ONE), "refused"),
                size=(8, 7),
            ),
        ],
    )


def offers() -> Row:
    hellos = total(ONE.rate("tlsprof_hellos_total", SERVER))

    def offered(name: str, label: str) -> Query:
        share = each_of(total(ONE.rate(name, SERVER), label), hellos)
        return Query(share, f"{{{{{label}}}}}")

    nothing = "No ClientHello was read in this time range."
    return Row(
        "What clients offer",
        collapsed=True,
        panels=[
            course(
                "Offered groups",
                Text(
                    "Share of ClientHellos that offer each key exchange group.",
                    "x25519 in nearly all.",
                    "Compare with the negotiated groups: the server can prefer any group that nearly all"
                    " clients offer.",
                    nothing,
                ),
                SHARE,
                offered("tlsprof_offered_groups_total", "group"),
                size=(8, 8),
            ),
            course(
                "Offered versions",
                Text(
                    "Share of ClientHellos that offer each version.",
                    "TLS1.3 in nearly all.",
                    "Disable versions before TLS1.2 once hardly any client needs them.",
                    nothing,
                ),
                SHARE,
                offered("tlsprof_offered_versions_total", "version"),
                size=(8, 8),
                colours=colours.VERSIONS,
            ),
            course(
                "Features of ClientHellos",
                Text(
                    "Features as a share of ClientHellos: server name (SNI), post-quantum group, early data,"
                    " HelloRetryRequest, and PROXY protocol before the handshake.",
                    "server_name in nearly all, hello_retry_request in none.",
                    "hello_retry_request: the server insists on a group for which the client sent no key share,"
                    " which costs a round trip. Prefer x25519.",
                    nothing,
                ),
                SHARE,
                offered("tlsprof_hello_features_total", "feature"),
                size=(8, 8),
            ),
        ],
    )


def failures() -> Row:
    witness = total(ONE.rate(HANDSHAKES))
    ended = total(ONE.rate(HANDSHAKES, SERVER, 'outcome!="completed"'), "outcome")
    alerts = total(ONE.rate("tlsprof_alerts_total"), "direction", "description")
    return Row(
        "Failures",
        collapsed=True,
        panels=[
            course(
                "Handshakes that did not complete",
                Text(
                    "Failed: an error or a fatal alert. Abandoned: the client or the process disappeared.",
                    "Nearly none; scanners and health checks without TLS cause some.",
                    "failed: see Alerts. abandoned: clients give up, or a health check only opens the port.",
                    "No handshake in this time range.",
                ),
                PER_SECOND,
                Query(or_none(ended, witness, "outcome"), "{{outcome}}"),
                colours=colours.OUTCOMES,
                size=(12, 7),
            ),
            course(
                "Alerts",
                Text(
                    "Cleartext TLS alerts per second, by direction and description.",
                    "None.",
                    "sent handshake_failure, protocol_version: no common cipher or version. received"
                    " unknown_ca, certificate_expired: the chain or the certificate is wrong.",
                    "No handshake in this time range.",
                ),
                PER_SECOND,
                Query(or_none(alerts, witness, "description"), "{{direction}} {{description}}"),
                size=(12, 7),
            ),
        ],
    )
