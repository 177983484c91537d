"""Colours of series by name, the same on every dashboard, whichever series there are."""

Colours = dict[str, str]

ACTIVITIES: Colours = {
    "handshake": "orange",
    "encryption": "purple",
    "tcp_open": "blue",
    "tcp_close": "light-blue",
    "socket_io": "green",
    "application": "#9fa7b3",
    "unattributed": "#5a6068",
}
OUTCOMES: Colours = {"failed": "red", "abandoned": "orange", "none": "green"}
ATTEMPTS: Colours = {"accepted": "green", "refused": "red", "not_offered": "#9fa7b3"}
RESUMPTION: Colours = {"none": "#9fa7b3", "psk": "green", "ticket": "blue", "session_id": "light-blue"}
VERSIONS: Colours = {"TLS1.3": "green", "TLS1.2": "blue", "TLS1.1": "red", "TLS1.0": "dark-red"}
TURNS: Colours = {
    "1": "red",
    "2 to 5": "orange",
    "6 to 20": "light-blue",
    "21 to 100": "green",
    "more": "dark-green",
}
SIDES: Colours = {
    "server: service first": "orange",
    "server: peer first": "green",
    "client: service first": "blue",
    "client: peer first": "purple",
}
STEPS: Colours = {
    "key_exchange": "blue",
    "signing": "orange",
    "verification": "purple",
    "rsa_decryption": "red",
    "key_derivation": "light-blue",
    "other": "#9fa7b3",
    "unmeasured": "#5a6068",
}
MODES: Colours = {"user": "blue", "system": "orange"}
