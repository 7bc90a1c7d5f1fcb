"""The runner of pytest_test: what it calls a failure, and how it reads Bazel's variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_MAIN = Path(__file__).with_name("main.py")


def _run(folder: Path, text: str, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_sample.py").write_text(text)
    return subprocess.run(
        [sys.executable, _MAIN, "test_sample.py", *args],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"} | environ,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("def test_it(): pass", True),
        ("def test_it(): assert False", False),
        ("def helper(): pass", False),
        ("import pytest\n@pytest.mark.skip\ndef test_it(): pass", False),
        ("import pytest\ndef test_it(): pytest.skip()\ndef test_other(): pass", False),
        ("import pytest\n@pytest.mark.xfail\ndef test_it(): assert False", False),
        ("syntax error", False),
    ],
)
def test_status(tmp_path: Path, text: str, passes: bool) -> None:
    """Only a run in which something ran and nothing failed or was skipped passes."""
    result = _run(tmp_path, text)
    assert (result.returncode == 0) == passes, result.stdout


def test_junit_xml(tmp_path: Path) -> None:
    """Bazel gets the results of the single tests."""
    xml = tmp_path / "out.xml"
    _run(tmp_path, "def test_it(): pass", XML_OUTPUT_FILE=str(xml))
    assert 'tests="1"' in xml.read_text()


def test_temporary_files(tmp_path: Path) -> None:
    """They go with the test's folder."""
    text = "def test_it():\n  import tempfile\n  tempfile.mkstemp(prefix='left-')"
    (tmp_path / "of the test").mkdir()
    result = _run(tmp_path, text, TEST_TMPDIR=str(tmp_path / "of the test"))
    assert result.returncode == 0, result.stdout
    assert len(list((tmp_path / "of the test").glob("left-*"))) == 1


def test_filter(tmp_path: Path) -> None:
    """`--test_filter` picks tests, and a filter that fits none fails."""
    text = "def test_good(): pass\ndef test_bad(): assert False"
    assert _run(tmp_path, text, TESTBRIDGE_TEST_ONLY="good").returncode == 0
    assert _run(tmp_path, text, TESTBRIDGE_TEST_ONLY="absent").returncode != 0
    # What the folders are called says nothing.
    assert _run(tmp_path, text, TESTBRIDGE_TEST_ONLY=tmp_path.name).returncode != 0


def test_shards(tmp_path: Path) -> None:
    """Every test runs in exactly one shard; a shard without tests passes."""
    text = "".join(f"def test_{i}(): print('ran-{i}-')\n" for i in range(3))
    outputs = []
    for shard in range(4):
        status = tmp_path / f"status{shard}"
        result = _run(
            tmp_path,
            text,
            "-s",
            TEST_TOTAL_SHARDS="4",
            TEST_SHARD_INDEX=str(shard),
            TEST_SHARD_STATUS_FILE=str(status),
        )
        assert result.returncode == 0, result.stdout
        assert status.exists()
        outputs.append(result.stdout)
    assert [sum(f"ran-{i}-" in output for output in outputs) for i in range(3)] == [1, 1, 1]
