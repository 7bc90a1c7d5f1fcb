"""Children and temporary folders go with the process that made them, however it ends.

Whoever lives holds the writing end of a pipe, so a test that reads from it waits for exactly that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from rules_executorch.common import guard

_START = """
import os, signal, subprocess, sys, tempfile, time
from rules_executorch.common import guard

alive = int(os.environ["ALIVE"])

def say(text):
    os.write(alive, text + b"\\n")

def sleeping():
    say(b"asleep")
    time.sleep(3600)
    return 0

real_fork = os.fork
"""


class Program:
    """A process that runs a text, and a pipe whose writing end all its descendants hold."""

    def __init__(self, text: str, folder: Path) -> None:
        self._reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_START) + textwrap.dedent(text)],
            env=os.environ | {"ALIVE": str(writer), "TMPDIR": str(folder)},
            pass_fds=[writer],
            stdin=subprocess.PIPE,
        )
        os.close(writer)
        self._lines = os.fdopen(self._reader, "rb")

    def line(self) -> bytes:
        """What one of them says next."""
        return self._lines.readline()

    def rest(self) -> bytes:
        """What they say until the last of them has ended."""
        return self._lines.read()

    def end(self, number: int = 0) -> int:
        """Sends a signal; gives the status."""
        if number:
            self.process.send_signal(number)
        status = self.process.wait()
        self._lines.close()
        self.process.stdin.close()
        return status


def wait_until_empty(folder: Path) -> None:
    """The folders are removed by the guard, and nothing tells when."""
    while list(folder.iterdir()):
        time.sleep(0.01)


_GRANDCHILD = """
def work():
    subprocess.Popen(["sleep", "3600"], pass_fds=[alive])
    open(os.path.join(tempfile.gettempdir(), "left"), "w").close()
    return sleeping()

with guard.temporary_files(), guard.Child(work) as child:
    child.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_child_and_what_it_started_go_with_the_parent(tmp_path: Path, number: int) -> None:
    program = Program(_GRANDCHILD, tmp_path)
    assert program.line() == b"asleep\n"
    assert len(list(tmp_path.iterdir())) == 1
    program.process.send_signal(number)
    assert program.rest() == b"", "the child and the grandchild have ended"
    assert program.end() == -number
    wait_until_empty(tmp_path)


def test_a_signal_right_after_the_fork_ends_the_child(tmp_path: Path) -> None:
    """The parent has a handler that raises, as a worker has."""
    program = Program(
        """
        def fork():
            pid = real_fork()
            if pid:
                os.kill(os.getpid(), signal.SIGTERM)
            return pid

        os.fork = fork
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        with guard.temporary_files(), guard.Child(sleeping):
            say(b"not to be reached")
        """,
        tmp_path,
    )
    assert b"not to be reached" not in program.rest()
    assert program.end() == 143
    wait_until_empty(tmp_path)


def test_a_parent_that_dies_right_after_the_fork_takes_the_child_along(tmp_path: Path) -> None:
    """The child has not even begun when its parent is gone."""
    program = Program(
        """
        parent = os.getpid()

        def fork():
            pid = real_fork()
            if pid:
                os.kill(os.getpid(), signal.SIGKILL)
            while os.getppid() == parent:
                os.sched_yield()
            return pid

        os.fork = fork
        with guard.temporary_files(), guard.Child(sleeping):
            pass
        """,
        tmp_path,
    )
    program.rest()
    assert program.end() == -signal.SIGKILL
    wait_until_empty(tmp_path)


def test_a_child_does_not_act_on_a_signal_as_its_parent(tmp_path: Path) -> None:
    """A signal for all of a group that arrives before the child has left it."""
    program = Program(
        """
        def fork():
            pid = real_fork()
            if pid == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return pid

        os.fork = fork
        signal.signal(signal.SIGTERM, lambda number, _: say(b"handled"))
        with guard.Child(sleeping) as child:
            say(str(child.wait()).encode())
        """,
        tmp_path,
    )
    assert program.rest() == b"-15\n"
    assert program.end() == 0


def test_a_guard_that_was_killed_is_replaced(tmp_path: Path) -> None:
    program = Program(
        """
        with guard.temporary_files():
            guard._guard._process.kill()
            guard._guard._process.wait()
            with guard.Child(sleeping) as child:
                child.wait()
        """,
        tmp_path,
    )
    assert program.line() == b"asleep\n"
    program.process.kill()
    program.rest()
    program.end()
    wait_until_empty(tmp_path)


def test_a_process_that_was_started_goes_with_this_one(tmp_path: Path) -> None:
    program = Program(
        """
        process = subprocess.Popen(["sh", "-c", "sleep 3600 & wait"], process_group=0,
                                   pass_fds=[alive])
        with guard.ending(process):
            say(b"started")
            time.sleep(3600)
        """,
        tmp_path,
    )
    assert program.line() == b"started\n"
    program.process.kill()
    program.rest()
    program.end()


def test_what_a_child_started_goes_with_the_child() -> None:
    reader, writer = os.pipe()

    def work() -> int:
        subprocess.Popen(["sleep", "3600"], pass_fds=[writer])
        return 3

    with guard.Child(work) as child:
        os.close(writer)
        assert child.wait() == 3
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b""


def test_a_process_that_a_child_forked_does_not_make_it_last(tmp_path: Path) -> None:
    """It would hold what tells that the child has ended."""

    def work() -> int:
        if os.fork() == 0:
            signal.pause()
        return 0

    with guard.Child(work) as child:
        assert child.wait() == 0


def test_a_fault_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise ValueError("a fault")

    with guard.Child(work) as child:
        assert child.wait() == 1
    assert "ValueError: a fault" in capfd.readouterr().err


def test_temporary_files_are_in_a_folder_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with guard.temporary_files() as folder:
        tempfile.mkstemp()
        subprocess.run(["sh", "-c", 'touch "$TMPDIR/of-a-program"'], check=True)
        assert len(os.listdir(folder)) == 2
        os.mkdir(os.path.join(folder, "read-only"))
        open(os.path.join(folder, "read-only", "file"), "w").close()
        os.chmod(os.path.join(folder, "read-only"), 0o500)
        assert os.listdir(tmp_path) == [os.path.basename(folder)]
    assert os.listdir(tmp_path) == []
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path)
