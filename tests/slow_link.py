# SPDX-License-Identifier: Apache-2.0
"""A link on the way to a server that carries so many bytes a second and no more."""

import contextlib
import socket
import threading
import time

PIECE = 1 << 16


class SlowLink:
    def __init__(self, endpoint, bytes_per_s):
        self.far = endpoint.removeprefix("tcp/").rsplit(":", 1)
        self.bytes_per_s = bytes_per_s
        self.listening = socket.socket()
        # What waits here is not on its way yet: little may.
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen()
        self.endpoint = f"tcp/127.0.0.1:{self.listening.getsockname()[1]}"
        self.sockets = [self.listening]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listening.accept()
                far = socket.create_connection((self.far[0], int(self.far[1])))
                self.sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE):
                time.sleep(len(piece) / self.bytes_per_s)
                sink.sendall(piece)
