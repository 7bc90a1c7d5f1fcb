"""The persistent worker: protocol, isolation of requests, cancellation, what ends with it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

PROGRAM = textwrap.dedent(
    """
    import os, subprocess, sys, tempfile, time
    from rules_executorch.action import environment, worker

    state = []
    alive = int(os.environ["ALIVE"])

    def warm_up(arguments):
        print("printed by an import")
        state.append("warm")

    def run(arguments):
        if arguments[0] == "crash":
            raise ValueError("a fault")
        if arguments[0] == "killed":
            os.kill(os.getpid(), 9)
        if arguments[0] == "leave":
            subprocess.Popen(["sleep", "3600"], pass_fds=[alive])
        if arguments[0] == "write":
            tempfile.mkstemp()
        if arguments[0] == "sleep":
            tempfile.mkstemp()
            os.write(alive, b"asleep\\n")
            time.sleep(3600)
        state.append(arguments[0])
        print(",".join(state))
        return int(arguments[1])

    with environment.isolated_variables():
        sys.exit(worker.serve(run, warm_up))
    """
)


class Worker:
    """A worker, and a pipe whose writing end it and all its descendants hold."""

    def __init__(self, folder=None):
        reader, writer = os.pipe()
        variables = {"ALIVE": str(writer)}
        if folder:
            variables["TMPDIR"] = str(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | variables,
            pass_fds=[writer],
        )
        os.close(writer)
        self.alive = os.fdopen(reader, "rb")

    def send(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def response(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *arguments):
        self.send(arguments=arguments)
        return self.response()

    def start_sleeping(self):
        """Returns once the request runs."""
        self.send(arguments=["sleep", "0"])
        assert self.alive.readline() == b"asleep\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.alive.read() == b"", "it and its descendants end"
        self.process.wait()
        self.process.stdout.close()
        self.alive.close()


def test_answers_with_output_and_exit_code():
    with Worker() as worker:
        answer = worker.ask("one", "0")
        assert answer == {"exitCode": 0, "output": "warm,one\n", "requestId": 0}
        assert worker.ask("two", "3")["exitCode"] == 3


def test_a_request_leaves_nothing_for_the_next():
    with Worker() as worker:
        worker.ask("one", "0")
        assert worker.ask("two", "0")["output"] == "warm,warm,two\n"


def test_survives_a_fault_and_a_killed_child():
    with Worker() as worker:
        fault = worker.ask("crash", "0")
        assert fault["exitCode"] == 1
        assert "ValueError: a fault" in fault["output"]
        killed = worker.ask("killed", "0")
        assert killed["exitCode"] == 137
        assert "SIGKILL" in killed["output"]
        assert worker.ask("one", "0")["exitCode"] == 0


def test_cancellation_ends_the_request_at_once():
    with Worker() as worker:
        worker.start_sleeping()
        worker.send(cancel=True, requestId=0)
        assert worker.response() == {"requestId": 0, "wasCancelled": True}
        assert worker.ask("one", "0")["exitCode"] == 0


def test_closing_standard_input_ends_the_worker_and_its_request():
    with Worker() as worker:
        worker.start_sleeping()
    assert worker.process.returncode == 0


def test_what_a_request_started_ends_with_it():
    with Worker() as worker:
        assert worker.ask("leave", "0")["exitCode"] == 0


def scratch_folder(folder):
    """The one of the worker."""
    (found,) = folder.iterdir()
    return found


def test_temporary_files_go_with_the_request(tmp_path):
    with Worker(tmp_path) as worker:
        worker.ask("write", "0")
        worker.ask("killed", "0")
        worker.start_sleeping()
        (request,) = scratch_folder(tmp_path).iterdir()
        assert len(list(request.iterdir())) == 1
        worker.send(cancel=True, requestId=0)
        worker.response()
        assert list(scratch_folder(tmp_path).iterdir()) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_is_ended_takes_all_along(tmp_path, number):
    with Worker(tmp_path) as worker:
        worker.ask("leave", "0")
        worker.start_sleeping()
        worker.process.send_signal(number)
        assert worker.process.wait() == {signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    # The guard removes the folder of one that could not, and nothing tells when.
    while list(tmp_path.iterdir()):
        time.sleep(0.01)
