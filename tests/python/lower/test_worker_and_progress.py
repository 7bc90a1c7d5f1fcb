"""Export and lower through the worker: the bytes of a cold process, and what it says meanwhile."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import DESCRIPTION, LLAMA, make_checkpoint

from rules_executorch.action.progress import Timings
from rules_executorch.common import schema

MAIN = Path(__file__).resolve().parents[3] / "python" / "main.py"
EXPORT_STAGES = ["start", "build the model", "trace the model", "write the exported program"]
LOWER_STAGES = [
    "start",
    "read the exported program",
    "bind the weights",
    "partition the graph",
    "delegates",
    "plan the memory",
    "write the program",
    "describe the program",
]
LINE = re.compile(r"^\d\d:\d\d:\d\d  (\S+)  (\w+): ([\w ]+)(?:, (\d+) of (\d+))?, [\d.]+ s, .* GB$")


def requests(folder: Path, out: Path) -> list[list[str]]:
    """The command lines of an export and of the lowering of what it wrote."""
    checkpoint = make_checkpoint(folder, LLAMA | {"num_hidden_layers": 1})
    files = {
        "export.json": {"max_cache_len": 16, "max_seq_len": 4},
        "lower.json": {"backend": "xnnpack"},
        "model.json": schema.to_json(DESCRIPTION),
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    out.mkdir()
    common = ["--config", checkpoint.config_path, "--target", "//a:b"]
    exported = [str(out / "program.pt2"), str(out / "signature.json")]
    return [
        ["export", *common, "--options", str(folder / "export.json")]
        + ["--out-program", exported[0], "--out-signature", exported[1]]
        + ["--out-timings", str(out / "export.timings.json")],
        ["lower", *common, "--options", str(folder / "lower.json")]
        + ["--exported", exported[0], "--signature", exported[1]]
        + ["--model-description", str(folder / "model.json")]
        + ["--weights", checkpoint.weights_path]
        + ["--out-program", str(out / "program.pte"), "--out-report", str(out / "report.md")]
        + ["--out-manifest", str(out / "manifest.json")]
        + ["--out-timings", str(out / "lower.timings.json")],
    ]


class Made:
    """What a worker and cold processes wrote and said."""

    def __init__(self, folder: Path) -> None:
        self.warm, self.cold = folder / "warm", folder / "cold"
        self.log, self.extra = folder / "log.txt", folder / "extra.txt"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        environment = os.environ | {"TMPDIR": str(self.temporary)}
        self.answers: list[dict[str, Any]] = []
        self.printed = ""
        command = [sys.executable, str(MAIN)]
        with (
            self.log.open("wb") as log,
            subprocess.Popen(
                [*command, "--persistent_worker", f"--progress={self.extra}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            ) as worker,
        ):
            for arguments in requests(folder / "model", self.warm):
                worker.stdin.write(json.dumps({"arguments": arguments}).encode() + b"\n")
                worker.stdin.flush()
                self.answers.append(json.loads(worker.stdout.readline()))
            worker.stdin.close()
        for arguments in requests(folder / "model", self.cold):
            # As in an action: a fixed seed of hashes.
            variables = environment | {"PYTHONHASHSEED": "0"}
            done = subprocess.run(
                [*command, *arguments], env=variables, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            self.printed += done.stdout + done.stderr

    def lines(self, command: str) -> list[re.Match[str]]:
        """The lines of the log about stages of a subcommand."""
        found = [LINE.match(line) for line in self.log.read_text().splitlines()]
        return [m for m in found if m and m[1] == "//a:b" and m[2] == command and m[3] != "done"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    yield Made(tmp_path_factory.mktemp("worker"))


def test_a_worker_writes_the_bytes_of_a_cold_process(made: Made) -> None:
    assert [answer["exitCode"] for answer in made.answers] == [0, 0]
    names = sorted(path.name for path in made.cold.iterdir())
    assert names == sorted(path.name for path in made.warm.iterdir())
    same = [name for name in names if not name.endswith(".timings.json")]
    assert len(same) == len(names) - 2 == 5
    for name in same:
        assert (made.warm / name).read_bytes() == (made.cold / name).read_bytes(), name


def test_nothing_is_left_in_the_temporary_folder(made: Made) -> None:
    assert list(made.temporary.iterdir()) == []


def first_of_each(lines: list[re.Match[str]]) -> list[str]:
    return list(dict.fromkeys(line[3] for line in lines))


def test_the_log_of_a_worker_has_the_stages_in_order(made: Made) -> None:
    assert first_of_each(made.lines("export")) == EXPORT_STAGES
    assert first_of_each(made.lines("lower")) == LOWER_STAGES
    manifest = json.loads((made.warm / "manifest.json").read_text())
    count = manifest["methods"]["forward"]["delegates"]["XnnpackBackend"]
    counted = [(int(m[4]), int(m[5])) for m in made.lines("lower") if m[3] == "delegates"]
    assert counted[0] == (0, count) and counted[-1] == (count, count)
    assert counted == sorted(counted)


def test_a_file_gets_the_lines_too_and_the_response_none(made: Made) -> None:
    log = made.log.read_text().splitlines()
    assert made.extra.read_text().splitlines() == [line for line in log if "//a:b" in line]
    assert [answer["output"] for answer in made.answers] == ["", ""]


def test_a_process_of_its_own_is_quiet_without_a_terminal(made: Made) -> None:
    assert made.printed == ""


def test_timings(made: Made) -> None:
    for command, stages in (("export", EXPORT_STAGES), ("lower", LOWER_STAGES)):
        value = json.loads((made.warm / f"{command}.timings.json").read_text())
        timings = schema.parse(Timings, value, command, instead="")
        assert timings.command == command
        assert [stage.name for stage in timings.stages] == stages
        total = sum(stage.seconds for stage in timings.stages)
        assert total == pytest.approx(timings.seconds, abs=0.1)
    by_name = {stage.name: stage for stage in timings.stages}
    manifest = json.loads((made.warm / "manifest.json").read_text())
    delegates = manifest["methods"]["forward"]["delegates"]
    assert by_name["delegates"].steps == delegates["XnnpackBackend"]
    assert by_name["start"].steps is None


def test_a_file_that_cannot_be_written_ends_the_worker_with_words(tmp_path: Path) -> None:
    command = [sys.executable, str(MAIN), "--persistent_worker", f"--progress={tmp_path}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert "the file cannot be written" in done.stderr and "Traceback" not in done.stderr
