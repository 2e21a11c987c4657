# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""What the host of a confidential job can do: rewrite the store, and sit on the wire."""

import multiprocessing
import os
import select
import socket
import time
from datetime import timedelta
from typing import Any, Dict, List, Optional, Tuple

import torch.distributed as dist

_DATA = b"D"  # how a data connection begins (docs/wire-format.md)


class HostileStore(dist.Store):
    """Hands out the address of a meddler instead of rank 0's, another job's addresses, or texts and counts."""

    def __init__(
        self,
        inner: dist.Store,
        directory: str,
        port: Optional[int],
        rename: Tuple[str, str] = ("", ""),
        note: Tuple[str, bytes] = ("", b""),
        count: Tuple[str, int] = ("", 0),
    ) -> None:
        super().__init__()
        self.inner = inner
        self.directory = directory
        self.port = port
        self.rename = rename
        self.note = note  # how the key ends, and what it has
        self.count = count  # likewise

    def _key(self, key: str) -> str:
        return key.replace(*self.rename) if "sealane/" in key and self.rename[0] else key

    def _noted(self, key: str) -> bool:
        return bool(self.note[0]) and key.endswith(self.note[0])

    def set(self, key: str, value: Any) -> None:
        self.inner.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        if self._noted(key):
            return self.note[1]
        value = self.inner.get(self._key(key))
        if self.port is None or not key.endswith("sealane/default/0"):
            return value
        size, _, name, port, *_ = value.decode().split()
        _write(self.directory + "/target", port)
        return f"{size}\nelsewhere {name} {self.port} 127.0.0.1".encode()

    def check(self, keys: List[str]) -> bool:
        keys = [key for key in keys if not self._noted(key)]
        try:  # Python cannot call check() of torch 1.13's stores
            self.inner.wait([self._key(key) for key in keys], timedelta(milliseconds=10))
        except RuntimeError:
            return False
        return True

    def add(self, key: str, amount: int) -> int:
        value = self.inner.add(key, amount)
        return self.count[1] if self.count[0] and key.endswith(self.count[0]) else value

    def wait(self, keys: List[str], timeout: timedelta = timedelta(seconds=60)) -> None:
        self.inner.wait(keys, timeout)


class Meddler:
    """A process between two ranks that passes everything on, and later flips bits of the data."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self) -> "Meddler":
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=self._run, daemon=True)
        self.process.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.join()
        self.listener.close()

    @staticmethod
    def start_meddling(directory: str) -> None:
        _write(directory + "/meddle", "now")

    def _run(self) -> None:
        other: Dict[socket.socket, socket.socket] = {}
        data: Dict[socket.socket, bool] = {}  # what the first byte of a guest said
        while True:
            for ready in select.select([self.listener, *other], [], [])[0]:
                if ready is self.listener:
                    guest, _ = ready.accept()
                    host = socket.create_connection(("127.0.0.1", int(_read(self.directory))))
                    other[guest], other[host] = host, guest
                    continue
                if ready not in other:
                    continue
                self._pass_on(ready, other, data)

    def _pass_on(self, ready: socket.socket, other: Dict[Any, Any], data: Dict) -> None:
        try:
            piece = bytearray(ready.recv(1 << 16))
        except OSError:
            piece = bytearray()
        peer = other[ready]
        if not piece:
            for end in (ready, peer):
                other.pop(end, None)
                end.close()
            return
        if peer not in data:  # the guest speaks first
            data.setdefault(ready, piece[:1] == _DATA)
        if (data.get(ready) or data.get(peer)) and os.path.exists(self.directory + "/meddle"):
            piece[len(piece) // 2] ^= 1
        try:
            peer.sendall(piece)
        except OSError:
            pass


def _write(path: str, text: str) -> None:
    """Ranks write the same at the same time."""
    mine = f"{path}.{os.getpid()}"
    with open(mine, "w", encoding="ascii") as file:
        file.write(text)
    os.rename(mine, path)


def _read(directory: str) -> str:
    while not os.path.exists(directory + "/target"):
        time.sleep(0.01)
    with open(directory + "/target", encoding="ascii") as file:
        return file.read()
