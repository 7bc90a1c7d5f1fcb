"""Counts the tests of a Bazel invocation from its build event file (JSON lines)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable


def outcomes(lines: Iterable[str]) -> dict[str, str]:
    """Maps each test target to its overall status, for example PASSED, FAILED or TIMEOUT.

    A test that never ran because its build failed has no summary; it counts under the status of
    its target: FAILED_TO_BUILD.
    """
    found: dict[str, str] = {}
    tests: set[str] = set()
    for line in lines:
        event = json.loads(line)
        key = event.get("id", {})
        if "testSummary" in event:
            found[key["testSummary"]["label"]] = event["testSummary"]["overallStatus"]
        elif "configured" in event and event["configured"].get("testSize"):
            tests.add(key["targetConfigured"]["label"])
    for label in tests - found.keys():
        found[label] = "FAILED_TO_BUILD"
    return found


def slowest(lines: Iterable[str], count: int) -> list[tuple[float, str]]:
    """Seconds and labels of the tests that took longest, the longest first.

    The shards of a test count together; a result from a cache took no time.
    """
    found = []
    for line in lines:
        event = json.loads(line)
        if "testSummary" in event:
            summary = event["testSummary"]
            if not int(summary.get("totalNumCached", 0)):
                seconds = int(summary.get("totalRunDurationMillis", 0)) / 1000
                found.append((seconds, event["id"]["testSummary"]["label"]))
    return sorted(found, reverse=True)[:count]


def main(argv: list[str]) -> int:
    """Prints the slowest and the failed tests and the closing line; 1 if one failed or none ran."""
    with open(argv[0], encoding="utf-8") as file:
        lines = file.readlines()
    found = outcomes(lines)
    for seconds, label in slowest(lines, 15):
        print(f"{seconds:7.1f} s  {label}")
    failed = sorted(label for label, status in found.items() if status not in ("PASSED", "FLAKY"))
    for label in failed:
        print(f"{found[label]}: {label}")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
