"""Traps for actions that look beyond their inputs: files, variables, code and a port."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from pathlib import Path
from types import TracebackType

_IN_OPEN = 0x20
_EVENT = struct.Struct("iIII")

_CODE = """\
import os
open({sprung!r}, "a").write(f"{name} ran in {{os.getpid()}}\\n")
raise SystemExit("code of the user ran in an action")
"""


class Traps:
    """A home full of things that no action may touch.

    Attributes:
        home: a HOME with a cache of the hub, a netrc, user site-packages and settings of torch.
        variables: of the environment, for whoever starts actions.
        netrc: a file for NETRC of actions. Bazel looks into that of its own environment.
        proxies: variables for actions. Bazel downloads through those of its own environment.
    """

    def __init__(self, folder: Path) -> None:
        """Sets the traps in an empty folder."""
        self.home = folder / "home"
        self._ran = folder / "ran.txt"
        path = folder / "path"
        site = self.home / ".local" / "lib" / "python3.11" / "site-packages"
        for place in (path, site):
            place.mkdir(parents=True)
            for name in ("sitecustomize", "usercustomize", "torch", "transformers"):
                code = _CODE.format(sprung=str(self._ran), name=name)
                (place / f"{name}.py").write_text(code)
        startup = folder / "startup.py"
        startup.write_text(_CODE.format(sprung=str(self._ran), name="startup"))
        hub = self.home / ".cache" / "huggingface"
        torch = self.home / ".cache" / "torch"
        settings = self.home / ".config" / "matplotlib"
        for place in (hub / "hub" / "models--example--tiny" / "refs", torch, settings):
            place.mkdir(parents=True)
            (place / "main").write_text("0" * 40)
        (hub / "token").write_text("hf_trap")
        self.netrc = folder / "netrc"
        self.netrc.write_text("machine 127.0.0.1 login trap password trap\n")

        self._server = socket.create_server(("127.0.0.1", 0))
        self._connections = 0
        address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        self.proxies = dict.fromkeys(names, address)
        self.variables = {
            # Bazel itself does not download through these two.
            "ALL_PROXY": address,
            "all_proxy": address,
            "HF_ENDPOINT": address,
            "HF_HOME": str(hub),
            "HF_HUB_CACHE": str(hub / "hub"),
            "HF_HUB_OFFLINE": "0",
            "HF_TOKEN": "hf_trap",
            "MKL_NUM_THREADS": "3",
            "OMP_NUM_THREADS": "3",
            "PYTHONHASHSEED": "7",
            "PYTHONOPTIMIZE": "2",
            "PYTHONPATH": str(path),
            "PYTHONSTARTUP": str(startup),
            "PYTHONUSERBASE": str(self.home / ".local"),
            "PYTHONWARNINGS": "error",
            "TORCHINDUCTOR_CACHE_DIR": str(torch),
            "TORCHDYNAMO_DISABLE": "1",
            "TORCH_COMPILE_DEBUG": "1",
            "TORCH_HOME": str(torch),
            "TORCH_LOGS": "+all",
            "TRANSFORMERS_CACHE": str(hub),
        }
        self._watch = _Watch([path, startup, self.netrc, hub, torch, settings, site])

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections += 1
            connection.close()

    def sprung(self) -> list[str]:
        """What was touched since the traps were set."""
        found = [f"opened {path}" for path in self._watch.opened()]
        if self._connections:
            found.append(f"{self._connections} connections")
        if self._ran.exists():
            found += self._ran.read_text().splitlines()
        return found

    def __enter__(self) -> Traps:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._watch.close()


class _Watch:
    """Linux' inotify: who opens a file is not said, but that someone does."""

    def __init__(self, places: list[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._fd >= 0, os.strerror(ctypes.get_errno())
        self._paths: dict[int, Path] = {}
        for place in places:
            folders = [Path(folder) for folder, _, _ in os.walk(place)] or [place]
            for path in folders:
                number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _IN_OPEN)
                assert number >= 0, os.strerror(ctypes.get_errno())
                self._paths[number] = path

    def opened(self) -> list[str]:
        found: dict[str, None] = {}
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                return list(found)
            while data:
                number, _, _, length = _EVENT.unpack_from(data)
                name = data[_EVENT.size : _EVENT.size + length].rstrip(b"\0").decode()
                found.setdefault(str(self._paths[number] / name))
                data = data[_EVENT.size + length :]

    def close(self) -> None:
        os.close(self._fd)
