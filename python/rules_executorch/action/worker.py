"""Bazel's persistent worker, JSON protocol, singleplex.

The parent reads requests and imports what a subcommand needs, once; each request runs in a child
forked from it. A request therefore starts with warm modules, yet nothing that it does (state of
torch, memory, environment, working files) is there for the next one. The child, what it started
and its temporary files go with the request, and with the worker, however that ends.

Protocol: https://bazel.build/remote/creating, "Creating Persistent Workers". One JSON object per
line: `{"arguments": [...], "requestId": 0, "cancel": false}` in, and
`{"exitCode": 0, "output": "...", "requestId": 0}` out.

What a request is doing (`rules_executorch.action.progress`) goes to the worker's own standard
error, which is Bazel's log of the worker, and with `--progress=FILE` also to a file, for example a
terminal.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from rules_executorch.action import progress
from rules_executorch.common import guard
from rules_executorch.common.errors import UserError

Run = Callable[[list[str]], int]
WarmUp = Callable[[list[str]], None]

FLAG = "--persistent_worker"
PROGRESS_FLAG = "--progress="


def open_progress(argv: Sequence[str]) -> list[int]:
    """Where progress goes besides the log: the files of `--progress=FILE` in a command line.

    Pass it to a worker with `--worker_extra_flag=MNEMONIC=--progress=FILE`. The flag is not part of
    an action's key, so nothing is rebuilt.

    Raises:
        UserError: a file cannot be opened.
    """
    found = []
    for argument in argv:
        if argument.startswith(PROGRESS_FLAG):
            path = argument.removeprefix(PROGRESS_FLAG)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY
            try:
                found.append(os.open(path, flags, 0o644))
            except OSError as error:
                raise UserError(
                    f"{argument}: the file cannot be written: {error.strerror}.",
                    instead="Name a file that can, or a terminal, as `tty` prints it.",
                ) from error
    return found


class _Lines:
    """Lines of a file descriptor, read without blocking past what has arrived."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = b""
        self.closed = False

    def read(self) -> Iterator[bytes]:
        """Reads once and yields the lines that are complete by now."""
        data = os.read(self.fd, 1 << 16)
        if not data:
            self.closed = True
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        yield from (line for line in lines if line.strip())


def _request(run: Run, arguments: list[str], log: IO[bytes], scratch: str) -> int:
    """What the child does: runs one request, and writes what it prints to `log`."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    return run(arguments)


def _respond(out: IO[bytes], response: dict[str, Any]) -> None:
    out.write(json.dumps(response, separators=(",", ":")).encode() + b"\n")
    out.flush()


def serve(run: Run, warm_up: WarmUp, sinks: Sequence[int] = ()) -> int:
    """Serves requests from standard input until it closes.

    Args:
        run: runs one command line and returns its exit status.
        warm_up: imports, in the parent, what a command line will need.
        sinks: file descriptors that progress goes to, beside standard error.
    """
    # A request's standard error is collected for its response; this one is the log.
    progress.SINKS.set((os.dup(2), *sinks))
    # Bazel ends a worker by SIGTERM.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    out = os.fdopen(os.dup(1), "wb")
    # Libraries print on import; only responses may reach the real standard output.
    os.dup2(2, 1)
    requests = _Lines(0)
    waiting: list[dict[str, Any]] = []
    with selectors.DefaultSelector() as selector:
        selector.register(requests.fd, selectors.EVENT_READ)
        while True:
            while not waiting and not requests.closed:
                waiting += [json.loads(line) for line in requests.read()]
            if not waiting:
                return 0
            request = waiting.pop(0)
            if not request.get("cancel"):
                _serve_one(request, run, warm_up, selector, requests, waiting, out)


def _serve_one(
    request: dict[str, Any],
    run: Run,
    warm_up: WarmUp,
    selector: selectors.BaseSelector,
    requests: _Lines,
    waiting: list[dict[str, Any]],
    out: IO[bytes],
) -> None:
    """Runs one request to its end, or to its cancellation, and responds."""
    request_id = request.get("requestId", 0)
    arguments = list(request.get("arguments", []))
    warm_up(arguments)
    with tempfile.TemporaryFile() as log, guard.temporary_folder("request-") as scratch:
        cancelled = False
        with guard.Child(lambda: _request(run, arguments, log, scratch)) as child:
            selector.register(child, selectors.EVENT_READ)
            try:
                running = True
                while running:
                    for key, _ in selector.select():
                        if key.fileobj is child:
                            running = False
                            continue
                        arrived = [json.loads(line) for line in requests.read()]
                        cancels = [r for r in arrived if r.get("cancel")]
                        waiting += [r for r in arrived if not r.get("cancel")]
                        gone = requests.closed
                        if gone:
                            selector.unregister(requests.fd)
                        if gone or any(r.get("requestId", 0) == request_id for r in cancels):
                            cancelled = True
                            child.kill()
            finally:
                selector.unregister(child)
            code = child.wait()
        log.seek(0)
        output = log.read().decode(errors="replace")
    if cancelled:
        _respond(out, {"requestId": request_id, "wasCancelled": True})
        return
    if code < 0:
        name = signal.Signals(-code).name
        output += f"\nThe action was ended by {name}; SIGKILL mostly means too little memory.\n"
        code = 128 - code
    _respond(out, {"exitCode": code, "output": output, "requestId": request_id})
