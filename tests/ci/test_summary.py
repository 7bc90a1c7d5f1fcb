"""The closing line of CI is counted from Bazel's build events."""

import json

from tools.ci import summary


def configured(label, size="SMALL"):
    return json.dumps(
        {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": size}}
    )


def ran(label, status, millis=0, cached=0):
    summary = {
        "overallStatus": status,
        "totalNumCached": cached,
        "totalRunDurationMillis": str(millis),
    }
    return json.dumps({"id": {"testSummary": {"label": label}}, "testSummary": summary})


def run(tmp_path, capsys, *lines):
    path = tmp_path / "events.json"
    path.write_text("\n".join(lines))
    status = summary.main([str(path)])
    return status, capsys.readouterr().out.splitlines()


def test_counts(tmp_path, capsys):
    lines = [configured("//:a"), configured("//:b"), ran("//:a", "PASSED"), ran("//:b", "FLAKY")]
    times = ["    0.0 s  //:b", "    0.0 s  //:a"]
    assert run(tmp_path, capsys, *lines) == (0, [*times, "2 passed, 0 failed"])


def test_a_failure_and_a_test_that_never_ran_both_fail(tmp_path, capsys):
    lines = [configured("//:a"), configured("//:b"), ran("//:a", "TIMEOUT")]
    lines.append(json.dumps({"id": {"targetConfigured": {"label": "//:lib"}}, "configured": {}}))
    assert run(tmp_path, capsys, *lines) == (
        1,
        ["    0.0 s  //:a", "TIMEOUT: //:a", "FAILED_TO_BUILD: //:b", "0 passed, 2 failed"],
    )


def test_no_test_is_a_failure(tmp_path, capsys):
    assert run(tmp_path, capsys, json.dumps({"id": {}})) == (1, ["0 passed, 0 failed"])


def test_the_slowest_come_first_without_those_from_a_cache(tmp_path, capsys):
    lines = [ran("//:a", "PASSED", 900), ran("//:b", "PASSED", 61_250)]
    lines += [ran("//:c", "PASSED", 99_000, cached=1)]
    lines += [ran(f"//:d{number}", "PASSED", 100) for number in range(20)]
    _, printed = run(tmp_path, capsys, *lines)
    assert printed[:2] == ["   61.2 s  //:b", "    0.9 s  //:a"]
    assert len(printed) == 16
