"""A module whose import waits at a meeting place until the host lets the process in."""

import os
import socket

if PLACE := os.environ.get("MEETING"):
    with socket.create_connection(("127.0.0.1", int(PLACE)), timeout=60) as _place:
        assert _place.recv(1) == b"!"


def length(state, item):
    return len(state) + item
