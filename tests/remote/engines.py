"""Engines that a company would run: nginx as a cache, buildbox-casd as a cache and an executor."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import debian

from rules_executorch.common import guard

_NO_NAMESPACES = Path(__file__).with_name("bwrap_without_namespaces.sh")

_NGINX = """\
{user}
daemon off;
worker_processes 1;
error_log {folder}/error.log;
pid {folder}/nginx.pid;
events {{ }}
http {{
  log_format request "$request_method $uri $status";
  access_log {folder}/access.log request;
  client_body_temp_path {folder}/tmp;
  proxy_temp_path {folder}/tmp;
  fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp;
  scgi_temp_path {folder}/tmp;
  client_max_body_size 0;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/data;
    location ~ ^/(ac|cas)/[0-9a-f]+$ {{
      dav_methods PUT;
      create_full_put_path on;
      dav_access user:rw;
    }}
  }}
}}
"""


class Server:
    """A process with descendants that listens on a loopback port until it is killed.

    It does not outlive the tests, should they be killed.

    Attributes:
        port: that it listens on.
        process: the process, in a session of its own.
    """

    def __init__(
        self, command: Callable[[int], list[str]], log: Path, env: Mapping[str, str]
    ) -> None:
        """Starts the process and waits until it listens.

        Args:
            command: makes its command line from a port.
            log: a file for what it prints.
            env: all of its variables.
        """
        # Whatever else runs here may take a free port before the process does.
        for _ in range(5):
            self.port = _free_port()
            with log.open("ab") as file:
                self.process = subprocess.Popen(
                    command(self.port),
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._ending = contextlib.ExitStack()
            self._ending.enter_context(guard.ending(self.process))
            if self._listens():
                return
            self.kill()
        raise AssertionError(f"{command(0)[0]} did not start:\n{log.read_text()}")

    def _listens(self) -> bool:
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return True
        return False

    def kill(self) -> None:
        """Ends the process and its descendants at once, as a machine that loses power."""
        self._ending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class HttpCache(Server):
    """nginx with WebDAV, as the cheapest cache there is.

    Attributes:
        url: for `--remote_cache`.
    """

    def __init__(self, folder: Path) -> None:
        """Starts it on an empty folder."""
        self._folder = folder
        for name in ("data/ac", "data/cas", "tmp"):
            (folder / name).mkdir(parents=True)
        programs = debian.programs("nginx")
        configuration = folder / "nginx.conf"
        # Root's would else give up what it may do, and with it this folder.
        user = "user root root;" if os.getuid() == 0 else ""

        def command(port: int) -> list[str]:
            configuration.write_text(_NGINX.format(folder=folder, port=port, user=user))
            # Without -e it would write to the system's log before it has read its configuration.
            log = str(folder / "error.log")
            return [
                str(_program(programs, "usr/sbin/nginx")), "-p", str(folder), "-e", log,
                "-c", str(configuration),
            ]  # fmt: skip

        super().__init__(command, folder / "output.log", programs.env)
        self.url = f"http://127.0.0.1:{self.port}"

    def blob(self, digest: str) -> Path:
        """The file with the content of a sha256."""
        return self._folder / "data" / "cas" / digest

    def blobs(self) -> dict[str, int]:
        """Size in bytes by sha256."""
        return {file.name: file.stat().st_size for file in (self._folder / "data/cas").iterdir()}

    def results(self) -> list[Path]:
        """The files with results of actions."""
        return sorted((self._folder / "data/ac").iterdir())

    def uploads(self) -> Counter[str]:
        """How often each sha256 was sent here."""
        lines = (self._folder / "access.log").read_text().splitlines()
        found = (line.split() for line in lines)
        return Counter(
            uri.rpartition("/")[2]
            for method, uri, _ in found
            if method == "PUT" and uri.startswith("/cas/")
        )


class Executor(Server):
    """buildbox-casd, which stores blobs and results, and executes actions on this machine.

    Attributes:
        url: for `--remote_executor` and `--remote_cache`.
    """

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        """Starts it.

        Args:
            folder: an empty folder for its programs and its log.
            data: its store; by default a new one in `folder`.
        """
        programs = folder / "programs"
        programs.mkdir()
        for source in map(Path, os.environ["BUILDBOX"].split()):
            if source.name.startswith("buildbox-"):
                shutil.copy(source, programs)
                (programs / source.name).chmod(0o755)
        env = {"PATH": f"{programs}:/usr/bin:/bin"}
        if has_namespaces():
            sandbox = debian.programs("bubblewrap")
            (programs / "bwrap").symlink_to(_program(sandbox, "usr/bin/bwrap"))
            env["LD_LIBRARY_PATH"] = sandbox.env["LD_LIBRARY_PATH"]
        else:
            shutil.copy(_NO_NAMESPACES, programs / "bwrap")
        self.data = data or folder / "data"
        self.data.mkdir(exist_ok=True)

        def command(port: int) -> list[str]:
            return [
                str(programs / "buildbox-casd"),
                f"--bind=127.0.0.1:{port}",
                "--quota-high=20G",
                "--reserved=100M",
                f"--buildbox-run={programs / 'buildbox-run'}",
                "--jobs=2",
                "--runner-arg=--staging-mode=copy-or-link",
                *_binds(),
                str(self.data),
            ]

        super().__init__(command, folder / "output.log", env)
        self.url = f"grpc://127.0.0.1:{self.port}"

    def actions(self, words: str) -> list[int]:
        """Processes of running actions with these words in their command lines."""
        children: dict[int, list[int]] = {}
        lines: dict[int, str] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
            lines[int(entry.name)] = line
        found = []
        below = list(children.get(self.process.pid, []))
        while below:
            pid = below.pop()
            below += children.get(pid, [])
            program = lines[pid].split(" ", 1)[0].rpartition("/")[2]
            if words in lines[pid] and not program.startswith(("buildbox-", "bwrap")):
                found.append(pid)
        return found

    def kill_action(self, words: str) -> bool:
        """Kills such processes; returns whether there were any."""
        found = self.actions(words)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return bool(found)

    def kill_during(self, words: str) -> bool:
        """Kills the executor if such processes run; returns whether it did."""
        running = bool(self.actions(words))
        if running:
            self.kill()
        return running


def _program(programs: debian.Programs, path: str) -> Path:
    """A program of a package, which is not unpacked where this machine has it installed."""
    unpacked = programs.root / path
    return unpacked if unpacked.exists() else Path("/", path)


def _binds() -> list[str]:
    """What actions see of this machine: its C library, shell and coreutils."""
    names = ("usr", "bin", "lib", "lib64", "etc/alternatives", "etc/passwd")
    places = [Path("/", name) for name in names]
    # The source of a mount has to be no relative link.
    return [
        f"--runner-arg=--ro-bind-mount={place.resolve()}:{place}"
        for place in places
        if place.exists()
    ]


@functools.cache
def has_namespaces() -> bool:
    programs = debian.programs("bubblewrap")
    bwrap = str(_program(programs, "usr/bin/bwrap"))
    command = [bwrap, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true"]
    works = subprocess.run(command, env=programs.env, capture_output=True).returncode == 0
    if not works:
        print("This machine gives users no namespaces: remote actions run without a sandbox.")
    return works


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
