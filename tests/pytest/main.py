"""Runs pytest under Bazel's test protocol; see pytest_test.bzl."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest


class Protocol:
    """The parts of Bazel's test protocol that pytest does not know.

    Attributes:
        ran: tests that passed or failed, so far.
        skipped: the ones that were skipped or left to xfail.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Reads the number of shards and which of them this is."""
        self.shards = int(environ.get("TEST_TOTAL_SHARDS") or 1)
        self.shard = int(environ.get("TEST_SHARD_INDEX") or 0)
        self.empty_shard = False
        self.ran = 0
        self.skipped: list[str] = []
        status = environ.get("TEST_SHARD_STATUS_FILE")
        if status:
            Path(status).touch()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keeps every n-th test, n being the number of shards."""
        mine = items[self.shard :: self.shards]
        self.empty_shard = bool(items) and not mine
        kept = set(mine)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = mine

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts what ran."""
        if report.skipped:
            self.skipped.append(report.nodeid)
        elif report.when == "call":
            self.ran += 1

    def status(self, exit_code: int) -> int:
        """The exit status: a run without tests or with skipped tests has failed."""
        if self.empty_shard and exit_code == pytest.ExitCode.NO_TESTS_COLLECTED:
            return 0
        if exit_code == 0 and self.skipped:
            print(f"These tests were skipped, and nothing may be: {', '.join(self.skipped)}")
            return 1
        if exit_code == 0 and not self.ran:
            print("No test ran.")
            return 1
        return exit_code


def arguments(argv: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The arguments of pytest, from those of the target and Bazel's variables."""
    args = [
        "--config-file=/dev/null",
        # hypothesis' plugin takes a second to import and adds only reporting.
        "--disable-plugin-autoload",
        f"--rootdir={os.getcwd()}",
        # Or -k would look at the names of the folders above too, one of which is the target's.
        f"--confcutdir={os.getcwd()}",
        "-p",
        "no:cacheprovider",
        "--strict-markers",
        "--durations=5",
        "--durations-min=1",
        "-ra",
    ]
    if environ.get("XML_OUTPUT_FILE"):
        args.append(f"--junitxml={environ['XML_OUTPUT_FILE']}")
    if environ.get("TEST_TMPDIR"):
        args.append(f"--basetemp={environ['TEST_TMPDIR']}/pytest")
    if environ.get("TESTBRIDGE_TEST_ONLY"):
        args += ["-k", environ["TESTBRIDGE_TEST_ONLY"]]
    return args + list(argv)


def main(argv: Sequence[str]) -> int:
    """Runs the tests and returns the exit status."""
    if os.environ.get("TEST_TMPDIR"):
        # What libraries leave behind goes with the test.
        os.environ["TMPDIR"] = os.environ["TEST_TMPDIR"]
    protocol = Protocol(os.environ)
    return protocol.status(int(pytest.main(arguments(argv, os.environ), plugins=[protocol])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
