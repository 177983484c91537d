"""The lower half of the Service dashboard: what is negotiated, resumed and refused."""

from typing import Any, Optional

from . import colours, figures
from .colours import Colours
from .figures import COMPLETED, HANDSHAKES, SERVER
from .frame import Row
from .panels import PER_SECOND, SHARE, Query, course
from .queries import Source, or_none, total
from .text import Text

ONE = Source()
NO_HANDSHAKE = "The service completed no TLS handshake in this time."


def _mix(title: str, label: str, good: str, remedy: str, fixed: Optional[Colours] = None) -> Any:
    query = total(ONE.rate(HANDSHAKES, SERVER, COMPLETED), label)
    shows = f"Completed handshakes a second as server, by {title.lower()}."
    return course(
        title,
        Text(shows, good, remedy, NO_HANDSHAKE),
        PER_SECOND,
        Query(query, f"{{{{{label}}}}}"),
        stacked=True,
        size=(12, 7),
        colours=fixed,
    )


def negotiated() -> Row:
    return Row(
        "What is negotiated",
        [
            _mix(
                "Version",
                "version",
                "TLS1.3.",
                "TLS 1.2 takes one more trip to the client and back. Enable TLS 1.3 if clients offer it.",
                colours.VERSIONS,
            ),
            _mix(
                "Key exchange group",
                "group",
                "x25519, or X25519MLKEM768 where post-quantum security is wanted; `none` is a resumption"
                " without key exchange.",
                "secp384r1, secp521r1 and ffdhe cost more: put X25519 first (nginx: ssl_ecdh_curve).",
            ),
            _mix(
                "Signature",
                "signature",
                "ecdsa_p256 or ed25519; `none` in resumed handshakes.",
                "`unknown`: TLS 1.3 encrypts the certificate, and the probes of the steps are off. An RSA"
                " signature costs a multiple of an ECDSA one, the more so the longer its key."
                " Offer an ECDSA certificate beside the RSA one.",
            ),
            _mix(
                "Cipher suite",
                "cipher",
                "AES-GCM where the processor has AES, else ChaCha20-Poly1305.",
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
                "Much `none` from clients that come back: see the attempts beside.",
                colours.RESUMPTION,
            ),
            course(
                "Attempts to resume",
                Text(
                    "ClientHellos a second, by what became of the attempt to take up an earlier session.",
                    "accepted is large, refused near zero.",
                    "refused: the cache is too small or short-lived, or ticket keys differ between workers or"
                    " hosts. not_offered: clients have no session to offer; are tickets on?",
                    "No ClientHello was read in this time.",
                ),
                PER_SECOND,
                Query(attempts, "{{attempt}}"),
                stacked=True,
                colours=colours.ATTEMPTS,
                size=(12, 7),
            ),
            course(
                "Refused sessions",
                Text(
                    "Share of the ClientHellos that offered an earlier session in vain: each is a full"
                    " handshake that need not be.",
                    "Below 5%.",
                    "Enlarge and share the session cache (nginx: ssl_session_cache shared), or share ticket"
                    " keys between hosts.",
                    "No ClientHello was read in this time.",
                ),
                SHARE,
                Query(figures.refused_share(ONE), "refused"),
                size=(12, 7),
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
                    "Failed: an error or a fatal alert. Abandoned: the client or the process went away.",
                    "Next to none; scanners and health checks without TLS leave some.",
                    "failed: see the alerts. abandoned: clients give up, or a health check only opens the"
                    " port.",
                    "No handshake at all in this time.",
                ),
                PER_SECOND,
                Query(or_none(ended, witness, "outcome"), "{{outcome}}"),
                colours=colours.OUTCOMES,
                size=(12, 7),
            ),
            course(
                "Alerts",
                Text(
                    "TLS alerts that travelled in clear, a second, by direction and description.",
                    "None.",
                    "sent handshake_failure, protocol_version: no common cipher or version. received"
                    " unknown_ca, certificate_expired: the chain or the certificate is wrong.",
                    "No handshake at all in this time.",
                ),
                PER_SECOND,
                Query(or_none(alerts, witness, "description"), "{{direction}} {{description}}"),
                size=(12, 7),
            ),
        ],
    )
