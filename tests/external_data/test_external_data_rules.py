"""The rules around a program hand its data file on: commands run with it, archives have it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from rules_executorch.cli import main
from rules_executorch.common.errors import UserError
from rules_executorch.program.ptd import check_data, inspect_data

HERE = Path("tests/external_data")
PROGRAM, DATA = HERE / "split_xnnpack.pte", HERE / "split_xnnpack.ptd"
WHOLE = Path("models/tiny_qwen2_xnnpack.pte")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HERE / name, *arguments], capture_output=True, text=True, check=False, env=os.environ
    )


def test_the_program_answers_as_it_does_in_one_file() -> None:
    arguments = ("--prompt", "Once upon a time", "--max-new-tokens", "8", "--no-chat-template")
    split, whole = run("generate_split", *arguments), run("generate_whole", *arguments)
    assert split.returncode == 0 == whole.returncode, split.stderr + whole.stderr
    assert split.stdout == whole.stdout and split.stdout.strip()


def test_generate_without_the_data_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokenizer = HERE / "assets" / "tokenizer.json"
    arguments = ["generate", "--program", str(PROGRAM), "--tokenizer", str(tokenizer)]
    assert main([*arguments, "--prompt", "Once", "--no-chat-template"]) == 1
    told = capsys.readouterr().err
    assert "tensors in a data file, and none is given" in told and "--data" in told


def test_the_benchmark_measures_both() -> None:
    done = run("benchmark_split", "--runs", "1", "--prompt-tokens", "8", "--new-tokens", "4")
    assert done.returncode == 0, done.stderr
    assert "split_xnnpack / tiny_qwen2_xnnpack" in done.stdout


def test_a_budget_counts_both_files() -> None:
    done = run("over_budget")
    total = PROGRAM.stat().st_size + DATA.stat().st_size
    assert done.returncode == 1
    assert f"The program has {total} bytes" in done.stdout + done.stderr
    assert "data file" in done.stdout + done.stderr


def test_the_two_files_hold_a_tied_matrix_once() -> None:
    (manifest,) = HERE.glob("*.manifest.json")
    value = json.loads(manifest.read_text())
    assert value["data"]["sha256"] == digest(DATA)
    assert value["data"]["tensors"] == [vars(tensor) for tensor in inspect_data(str(DATA))]
    (tied,) = value["tied"]
    assert tied["stored_in"] == ["data"]
    matrix = next(
        tensor["bytes"]
        for tensor in value["data"]["tensors"]
        if tensor["name"] == "model.model.embed_tokens.weight"
    )
    # In one file, the kernel's copy and the delegate's are two.
    assert PROGRAM.stat().st_size + DATA.stat().st_size < WHOLE.stat().st_size - matrix // 2


def test_the_folder_of_an_app_has_the_data() -> None:
    folder = HERE / "assets"
    assert digest(folder / "model.ptd") == digest(HERE / "split_portable.ptd")
    check_data(str(folder / "model.pte"), str(folder / "model.ptd"))
    with pytest.raises(UserError, match="lacks"):
        check_data(str(PROGRAM), str(folder / "model.ptd"))


def test_the_release_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(HERE / "release.tar")]) == 0, capsys.readouterr().err
