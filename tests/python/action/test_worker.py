"""The persistent worker: protocol, isolation of requests, cancellation."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

PROGRAM = textwrap.dedent(
    """
    import os, sys, time
    from rules_executorch.action import worker

    state = []

    def warm_up(arguments):
        print("printed by an import")
        state.append("warm")

    def run(arguments):
        if arguments[0] == "crash":
            raise ValueError("a fault")
        if arguments[0] == "killed":
            os.kill(os.getpid(), 9)
        if arguments[0] == "sleep":
            time.sleep(60)
        state.append(arguments[0])
        print(",".join(state))
        return int(arguments[1])

    sys.exit(worker.serve(run, warm_up))
    """
)


class Worker:
    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def send(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def response(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *arguments):
        self.send(arguments=arguments)
        return self.response()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()


def the_child(process):
    """The process that runs a worker's request, once it was forked."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while not children.read_text().strip() and time.monotonic() < deadline:
        time.sleep(0.01)
    return int(children.read_text())


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
        start = time.monotonic()
        worker.send(arguments=["sleep", "0"], requestId=0)
        the_child(worker.process)
        worker.send(cancel=True, requestId=0)
        assert worker.response() == {"requestId": 0, "wasCancelled": True}
        assert time.monotonic() - start < 20
        assert worker.ask("one", "0")["exitCode"] == 0


def test_closing_standard_input_ends_the_worker_and_its_request():
    with Worker() as worker:
        worker.send(arguments=["sleep", "0"])
        the_child(worker.process)
    assert worker.process.returncode == 0


def test_a_worker_that_is_ended_takes_its_scratch_folder_along(tmp_path):
    program = textwrap.dedent(
        """
        import time
        from rules_executorch.action import environment, worker

        with environment.isolated_variables():
            worker.serve(lambda arguments: time.sleep(int(arguments[0])) or 0, lambda _: None)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    for seconds in ("0", "60"):
        process.stdin.write(json.dumps({"arguments": [seconds]}).encode() + b"\n")
        process.stdin.flush()
    assert "exitCode" in json.loads(process.stdout.readline())
    assert len(list(tmp_path.iterdir())) == 1
    child = the_child(process)
    process.terminate()
    assert process.wait(timeout=30) == 143
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}/exe").exists(), "its request lives on"
