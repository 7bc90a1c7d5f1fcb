"""What `embed` writes and refuses; that a compiler takes it is shown by embed_c_test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rules_executorch.cli import main
from rules_executorch.program import embed


def run(folder: Path, *more: str, content: bytes = bytes(range(100))) -> int:
    program = folder / "model.pte"
    program.write_bytes(content)
    outputs = ["--out-header", str(folder / "model.h"), "--out-source", str(folder / "model.c")]
    return main(["embed", "--program", str(program), "--symbol", "model_pte", *outputs, *more])


def test_the_array_has_the_bytes(tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    source = (tmp_path / "model.c").read_text()
    body = re.search(r"model_pte\[100\] = \{\n(.*?)\};", source, re.DOTALL)
    assert body
    assert bytes(int(number) for number in body[1].replace("\n", "").split(",")[:-1]) == bytes(
        range(100)
    )
    assert "model_pte_size = 100;" in source
    assert "extern const unsigned char model_pte[100];" in (tmp_path / "model.h").read_text()
    assert "section" not in source


def test_a_section_is_for_compilers_that_know_one(tmp_path: Path) -> None:
    assert run(tmp_path, "--section", "network_model_sec") == 0
    assert 'section("network_model_sec")' in (tmp_path / "model.c").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--symbol", "2nd"], "is not an identifier of C"),
        (["--alignment", "8"], "not a power of two of at least 16"),
        (["--alignment", "24"], "not a power of two of at least 16"),
        (["--section", 'a"b'], "is not the name of a section"),
    ],
)
def test_what_c_does_not_take_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture, arguments: list[str], words: str
) -> None:
    assert run(tmp_path, *arguments) == 1
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["model.pte"]


def test_a_program_too_large_for_a_compiler_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "MAX_BYTES", 99)
    assert run(tmp_path) == 1
    assert "executorch_assets" in capsys.readouterr().err
