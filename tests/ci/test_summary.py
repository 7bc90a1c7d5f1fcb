"""The closing line of CI is counted from Bazel's build events."""

import json

from tools.ci import summary


def configured(label, size="SMALL"):
    return json.dumps(
        {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": size}}
    )


def ran(label, status):
    return json.dumps(
        {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}
    )


def run(tmp_path, capsys, *lines):
    path = tmp_path / "events.json"
    path.write_text("\n".join(lines))
    status = summary.main([str(path)])
    return status, capsys.readouterr().out.splitlines()


def test_counts(tmp_path, capsys):
    lines = [configured("//:a"), configured("//:b"), ran("//:a", "PASSED"), ran("//:b", "FLAKY")]
    assert run(tmp_path, capsys, *lines) == (0, ["2 passed, 0 failed"])


def test_a_failure_and_a_test_that_never_ran_both_fail(tmp_path, capsys):
    lines = [configured("//:a"), configured("//:b"), ran("//:a", "TIMEOUT")]
    lines.append(json.dumps({"id": {"targetConfigured": {"label": "//:lib"}}, "configured": {}}))
    assert run(tmp_path, capsys, *lines) == (
        1,
        ["TIMEOUT: //:a", "FAILED_TO_BUILD: //:b", "0 passed, 2 failed"],
    )


def test_no_test_is_a_failure(tmp_path, capsys):
    assert run(tmp_path, capsys, json.dumps({"id": {}})) == (1, ["0 passed, 0 failed"])
