"""What ends with this process, however it ends: child processes and temporary folders.

A process that is killed cleans up nothing. So a small program stands beside it, is told through a
pipe what there is, and sees to it once the pipe closes, which the kernel does for a dead process.
It works where there are pipes and process groups, on Linux as on macOS.

This file is that program as well, and then imports nothing of the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

GROUP, FOLDER = "group", "folder"

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A server that is still at work when its folder goes writes new files there for a while.
_PATIENCE_S = 60.0


class _Guard:
    """The program beside this process, from this side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # Not -I: PYTHONHOME may be what tells this Python where its library is.
            [sys.executable, "-s", "-P", "-S", "-B", os.path.abspath(__file__)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # What ends the processes of a terminal is not for it.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self.fd = self._process.stdin.fileno()

    def lives(self) -> bool:
        """Whether it still reads."""
        return self._process.poll() is None

    def abandon(self) -> None:
        """In a forked child: lets go of the parent's."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        # Python would otherwise warn of, and wait for, a process that is not this one's.
        self._process.returncode = 0


_guard: _Guard | None = None
_kept: set[tuple[str, str]] = set()


def _message(verb: str, kind: str, value: str) -> bytes:
    return json.dumps([verb, kind, value]).encode() + b"\n"


def _start() -> _Guard:
    global _guard
    if _guard is None or not _guard.lives():
        _guard = _Guard()
        for kind, value in _kept:
            os.write(_guard.fd, _message("keep", kind, value))
    return _guard


def _after_fork() -> None:
    """A forked child that held the pipe open would keep the guard from seeing the parent's end."""
    global _guard
    if _guard is not None:
        _guard.abandon()
    _guard = None
    _kept.clear()


os.register_at_fork(after_in_child=_after_fork)


def _keep(kind: str, value: str) -> None:
    os.write(_start().fd, _message("keep", kind, value))
    _kept.add((kind, value))


def _forget(kind: str, value: str) -> None:
    if (kind, value) in _kept:
        _kept.remove((kind, value))
        # One that is started anew is told of the rest only.
        if _guard is not None and _guard.lives():
            os.write(_guard.fd, _message("forget", kind, value))


@contextlib.contextmanager
def temporary_folder(prefix: str = "rules_executorch-") -> Iterator[str]:
    """An empty folder that is removed at the end, or with this process.

    Yields:
        Its path, below the folder for temporary files.
    """
    folder = os.path.join(tempfile.gettempdir(), prefix + secrets.token_hex(8))
    _keep(FOLDER, folder)
    try:
        os.mkdir(folder, 0o700)
        yield folder
    finally:
        remove(folder)
        _forget(FOLDER, folder)


@contextlib.contextmanager
def temporary_files() -> Iterator[str]:
    """Has all temporary files of this process, and of what it starts, in a `temporary_folder`.

    Libraries leave theirs behind, and more so when they are interrupted.

    Yields:
        The folder's path.
    """
    with temporary_folder() as folder:
        variable, found = os.environ.get("TMPDIR"), tempfile.tempdir
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield folder
        finally:
            tempfile.tempdir = found
            if variable is None:
                os.environ.pop("TMPDIR", None)
            else:
                os.environ["TMPDIR"] = variable


@contextlib.contextmanager
def ending(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Ends a process and its group, at the end or with this process.

    Args:
        process: started with `process_group=0` or as a session of its own.
    """
    _keep(GROUP, str(process.pid))
    try:
        yield
    finally:
        _kill_group(process.pid)
        process.wait()
        _forget(GROUP, str(process.pid))


class Child:
    """A forked process. It leads a group of its own, in which is what it starts in turn.

    The group ends with the child, and with this process.
    """

    def __init__(self, work: Callable[[], int]) -> None:
        """Does not fork yet.

        Args:
            work: what the child does; gives its exit status, which is 1 if it raises.
        """
        self._work = work
        self.pid = 0
        self.status: int | None = None
        self._ended = -1

    def __enter__(self) -> Child:
        sys.stdout.flush()
        sys.stderr.flush()
        line = os.dup(_start().fd)
        self._ended, held = os.pipe()
        # The child must not act on a signal as if it were this process, nor this process before it
        # knows the child.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                os.close(self._ended)
                self._run(line, mask, held)
            # Either side may be first.
            with contextlib.suppress(OSError):
                os.setpgid(self.pid, self.pid)
            _kept.add((GROUP, str(self.pid)))
            os.close(held)
            os.close(line)
            # Here a signal that came meanwhile is heard.
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _run(self, line: int, mask: set[int], held: int) -> None:
        """The child, which never returns from here."""
        status = 1
        try:
            os.setpgid(0, 0)
            # Its own word, and before it lets go of the pipe: there is no moment at which the
            # parent could die with the child unknown to the guard.
            os.write(line, _message("keep", GROUP, str(os.getpid())))
            os.close(line)
            os.register_at_fork(after_in_child=lambda: os.close(held))
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            status = self._work()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def fileno(self) -> int:
        """A file descriptor that can be read from, for a selector, once the child has ended."""
        return self._ended

    def kill(self) -> None:
        """Ends the group at once."""
        _kill_group(self.pid)

    def wait(self) -> int:
        """Waits for the child to end; gives its status as `os.waitstatus_to_exitcode` does."""
        if self.status is None:
            os.read(self._ended, 1)
            # Before it is waited for: until then no other process can have its number.
            self.kill()
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            _forget(GROUP, str(self.pid))
        return self.status

    def __exit__(self, *_: object) -> None:
        if self._ended < 0:
            return
        if self.pid and self.status is None:
            self.kill()
            self.wait()
        os.close(self._ended)
        self._ended = -1


def _kill_group(group: int) -> None:
    # PermissionError is what macOS says of a group of which nothing but a dead leader is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def remove(folder: str) -> None:
    """Removes a folder with what is in it, also where the permission to write was taken away."""
    for path, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _serve() -> None:
    """The program: reads what there is until the pipe closes, and ends and removes that."""
    kept: dict[str, list[str]] = {GROUP: [], FOLDER: []}
    for line in sys.stdin:
        verb, kind, value = json.loads(line)
        if verb == "keep":
            kept[kind].append(value)
        elif value in kept[kind]:
            kept[kind].remove(value)
    for group in kept[GROUP]:
        _kill_group(int(group))
    deadline = time.monotonic() + _PATIENCE_S
    for folder in kept[FOLDER]:
        remove(folder)
        while os.path.exists(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
            remove(folder)


if __name__ == "__main__":
    _serve()
