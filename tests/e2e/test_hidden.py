"""What the tests take for hidden from BPF programs, see harness/hidden.py."""

import socket
import threading

from harness import hidden


def test_nothing_of_a_thread_of_ours_is_hidden():
    me = [threading.get_native_id()]
    with hidden.watched(me) as watched:
        assert watched.changes() == 0
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        assert watched.changes() > 0
    assert not hidden.are_hidden(me, seconds=2)
