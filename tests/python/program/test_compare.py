"""Differences of two programs are told in terms of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Built, Checkpoint, build

from rules_executorch.cli import main
from rules_executorch.export.options import ExportOptions
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.compare.files import compare_files
from rules_executorch.program.compare.programs import compare_programs
from rules_executorch.program.pte import open_program


def flipped(built: Built, folder: Path, place: int) -> str:
    """A copy of the program with one bit of one byte changed."""
    data = bytearray(Path(built.path).read_bytes())
    data[place] ^= 1
    path = folder / "flipped.pte"
    path.write_bytes(data)
    return str(path)


def test_the_same_bytes_have_no_difference(llama_xnnpack: Built, tmp_path: Path) -> None:
    copy = tmp_path / "copy.pte"
    copy.write_bytes(Path(llama_xnnpack.path).read_bytes())
    assert compare_programs(llama_xnnpack.path, str(copy)) == []


def test_a_weight_of_a_delegate_is_named(llama_xnnpack: Built, tmp_path: Path) -> None:
    with open_program(llama_xnnpack.path) as opened:
        index = min(opened.named.values())
        segment = opened.program.segments[index]
        place = opened.base + segment.offset + 40
    found = compare_programs(llama_xnnpack.path, flipped(llama_xnnpack, tmp_path, place))
    assert len(found) == 1
    assert re.fullmatch(
        r"constant \d+ of delegate \d+ of method `forward` \(XnnpackBackend, called by instruction"
        r" \d+\): 1 of [\d,]+ bytes differs, the first at byte 40",
        found[0],
    )


def test_a_weight_of_an_operator_is_named(llama_xnnpack: Built, tmp_path: Path) -> None:
    with open_program(llama_xnnpack.path) as opened:
        where = opened.program.constant_segment
        start = opened.base + opened.program.segments[where.segment_index].offset
        place = start + where.offsets[1] + 40
    found = compare_programs(llama_xnnpack.path, flipped(llama_xnnpack, tmp_path, place))
    assert found == [
        "constant 1 (float [320, 64], argument of aten::embedding.out, instruction 8 of"
        " `forward`): 1 of 20,480 elements differs, the first at element 10"
    ]


def test_a_compiled_graph_is_named(llama_xnnpack: Built, tmp_path: Path) -> None:
    with open_program(llama_xnnpack.path) as opened:
        plan = next(p for p in opened.program.execution_plan if p.name == "forward")
        segment = opened.program.segments[plan.delegates[2].processed.index]
        place = opened.base + segment.offset + 70
    found = compare_programs(llama_xnnpack.path, flipped(llama_xnnpack, tmp_path, place))
    assert [line.partition(" (")[0] for line in found] == [
        "compiled graph of delegate 2 of method `forward`"
    ]


def test_bytes_that_nothing_uses_are_placed(llama_xnnpack: Built, tmp_path: Path) -> None:
    with open_program(llama_xnnpack.path) as opened:
        place = opened.base + opened.program.segments[1].offset - 1
    found = compare_programs(llama_xnnpack.path, flipped(llama_xnnpack, tmp_path, place))
    assert len(found) == 1
    assert "padding" in found[0]


def test_an_option_shows_as_operators_and_constants(
    llama: Checkpoint, llama_xnnpack: Built, tmp_path: Path
) -> None:
    options = ExportOptions(max_cache_len=48, max_seq_len=16, logits="all")
    other = build(tmp_path / "other", llama, options, LowerOptions(backend="xnnpack"))
    found = compare_programs(llama_xnnpack.path, other.path)
    print("\n".join(found))
    methods = [line for line in found if line.startswith("constant method")]
    assert methods == [
        "constant method `get_max_context_len` is 32 in the first and 48 in the second"
    ]
    called = [line for line in found if line.startswith("method `forward` calls aten::")]
    assert called
    assert any("in the first and" in line and "in the second" in line for line in called)


def test_the_command_says_it_and_fails(
    llama_xnnpack: Built, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = flipped(llama_xnnpack, tmp_path, Path(llama_xnnpack.path).stat().st_size - 1)
    assert main(["compare", llama_xnnpack.path, other]) == 1
    assert "of method `forward`" in capfd.readouterr().out
    assert main(["compare", other, other]) == 0
    assert main(["compare", other, str(tmp_path / "none.pte")]) == 1
    assert "There is no file" in capfd.readouterr().err


def test_a_program_that_cannot_be_read_is_compared_by_byte(
    llama_xnnpack: Built, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.pte"
    cut.write_bytes(Path(llama_xnnpack.path).read_bytes()[:-8])
    assert re.fullmatch(
        r"[\d,]+ bytes in the first and [\d,]+ in the second",
        compare_files(llama_xnnpack.path, str(cut))[0],
    )
