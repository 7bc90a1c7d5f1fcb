"""Programs take turns, each run in a process of its own; figures are medians and ratios."""

import os
import signal
import subprocess
import sys

import pytest

from rules_executorch.common.errors import UserError
from rules_executorch.run import benchmark
from rules_executorch.run.benchmark import Contender


def test_programs_take_turns_and_the_first_turn_does_not_count():
    order = []

    def measure(contender):
        order.append(contender.name)
        return {figure: float(len(order)) for figure in benchmark.FIGURES}

    found = benchmark.race([Contender("a", "a.pte"), Contender("b", "b.pte")], measure, 2)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [run["load_s"] for run in found["a"]] == [4.0, 5.0]
    assert [run["load_s"] for run in found["b"]] == [3.0, 6.0]


def test_ratios_are_taken_run_by_run():
    def runs(*values):
        return [dict.fromkeys(benchmark.FIGURES, value) for value in values]

    summary = benchmark.summarize({"ours": runs(2.0, 9.0, 4.0), "plain": runs(1.0, 3.0, 4.0)})
    entry = summary["plain"]["decode_tokens_per_s"]
    assert entry["median"] == 3.0
    assert entry["first_over_this"] == {"median": 2.0, "low": 1.0, "high": 3.0}
    table = benchmark.render(summary)
    assert "ours / plain" in table.splitlines()[0]
    assert "2 (1 to 3)" in table


def test_a_run_leaves_nothing_behind_and_tells_its_peak_memory():
    def work():
        os.environ["LEFT_BEHIND"] = "1"
        print("not on standard output")
        return {"load_s": 1.0}

    result = benchmark.in_process(work)
    assert result["load_s"] == 1.0
    assert result["peak_rss_mb"] > 1
    assert "LEFT_BEHIND" not in os.environ


def test_a_run_that_fails_is_a_sentence(capfd):
    def work():
        raise UserError("The program is damaged.")

    with pytest.raises(UserError, match="ended with status 1"):
        benchmark.in_process(work)
    assert "The program is damaged." in capfd.readouterr().err


def test_a_run_ends_with_the_benchmark():
    """However that ends: what its child prints to is open until the child has ended."""
    program = """
import os, time
from rules_executorch.run import benchmark

def work():
    os.write(2, b"started\\n")
    time.sleep(3600)

benchmark.in_process(work)
"""
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"started\n"
        process.kill()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGKILL
