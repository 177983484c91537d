"""The lower half of the Service dashboard: what is negotiated, resumed and refused."""

from typing import Any, Optional

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
                "`unknown`: TLS 1.3 encrypts the certificate, and the probes of the steps are off. RSA"
                " signatures cost a multiple of ECDSA, growing with the key length. Offer an ECDSA"
                " certificate beside the RSA one.",
            ),
            _mix(
                "Cipher suite",
                "cipher",
                "AES-GCM if the CPU has AES instructions, otherwise ChaCha20-Poly1305.",
                "CBC suites with HMAC cost more for each byte: take them off, or put them last.",
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
                "Much `none` from returning clients: see the attempts in the next panel.",
                colours.RESUMPTION,
                width=8,
            ),
            course(
                "Attempts to resume",
                Text(
                    "ClientHellos per second, by result of the resumption attempt.",
                    "accepted is large, refused near zero.",
                    "refused: the cache is too small, its timeout too short, or ticket keys differ between"
                    " workers or hosts. not_offered: clients have no session to offer; are tickets on?",
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
                    "Share of ClientHellos whose session was refused: each is a full handshake that need"
                    " not be.",
                    "Below 5%.",
                    "Enlarge and share the session cache (nginx: ssl_session_cache shared), or share ticket"
                    " keys between hosts.",
                    "No ClientHello was read in this time.",
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
                    "Share of the ClientHellos that offer a key exchange group.",
                    "x25519 in nearly all.",
                    "A group that most offer can be preferred without loss: compare with those negotiated.",
                    nothing,
                ),
                SHARE,
                offered("tlsprof_offered_groups_total", "group"),
                size=(8, 8),
            ),
            course(
                "Offered versions",
                Text(
                    "Share of the ClientHellos that offer a version.",
                    "TLS1.3 in nearly all.",
                    "An old version that none offers can be turned off.",
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
                    "Share of the ClientHellos with a server name (SNI), a post-quantum group or early data, and of the"
                    " handshakes with a HelloRetryRequest.",
                    "server_name in nearly all, hello_retry_request in none.",
                    "hello_retry_request: the server wants a group that clients do not guess, a round trip more. Prefer"
                    " x25519.",
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
                    "Next to none; scanners and health checks without TLS leave some.",
                    "failed: see the alerts. abandoned: clients give up, or a health check only opens the"
                    " port.",
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
