"""Budgets: each limit on both sides, and that the values a failure names do pass."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_manifest import MANIFEST, METHOD

from rules_executorch.cli import main
from rules_executorch.common import schema
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.records.budget import Budget, check_budget
from rules_executorch.records.manifest import (
    DataEntry,
    Delegation,
    Manifest,
    Method,
    QuantizationEntry,
)

replace = dataclasses.replace


def test_data_beside_the_program_counts() -> None:
    manifest = replace(MANIFEST, data=DataEntry("program.ptd", 500_000, "e" * 64, []))
    assert problems(manifest, max_program_bytes=3_500_000) == []
    (problem,) = problems(manifest, max_program_bytes=3_400_000)
    assert "100000 bytes" in problem and "data file 500.00 kB" in problem
    assert "max_program_bytes = 3500000 would pass" in problem


def with_method(method: Method) -> Manifest:
    return replace(MANIFEST, methods={"forward": method})


def problems(manifest: Manifest = MANIFEST, **limits: Any) -> list[str]:
    checks = check_budget(manifest, Budget(**limits))
    assert len(checks) == len(limits)
    return [check.problem for check in checks if check.problem is not None]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_program_bytes": 3_000_000},
        {"max_planned_bytes": 8000},
        {"min_delegated_share": 0.7},
        {"allowed_operators": ["aten::add.out", "my::*"]},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_exactly_at_the_limit_passes(limits: dict[str, Any]) -> None:
    assert problems(**limits) == []


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            {"max_program_bytes": 2_999_999},
            ["1 bytes (1 B) more than the 2999999", "constants 2.00 MB, delegates 950.00 kB",
             "as exported: model.embed 1.20 MB, model.layers.0.mlp.down_proj 70.00 kB.",
             "embed and head are one matrix, stored 2 times", "max_program_bytes = 3000000 would"],
        ),
        (
            {"max_planned_bytes": 7000},
            ["1000 bytes (1.00 kB) more than the 7000", "cache of 64 positions takes 4.10 kB",
             "aten::mm.out in model.layers.0.mlp.up_proj 4.00 kB, delegate 1.00 kB.",
             "max_planned_bytes = 8000 would pass", "max_seq_len is 16"],
        ),
        (
            {"min_delegated_share": 0.85},
            ["7 of the 10 calls", "15.00 points below", "aten::add.Tensor (2), my::op (1)",
             "min_delegated_share = 0.7 would pass, or a backend that takes aten::add.Tensor."],
        ),
        (
            {"allowed_operators": ["aten::mul.out"]},
            ["calls 2 operators that are not allowed", "aten::add.out (3), my::op.out (1)",
             'allowed_operators: "aten::add.out", "my::op.out"'],
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_over_the_limit_says_by_how_much_and_what_would_pass(
    limits: dict[str, Any], words: list[str]
) -> None:
    (problem,) = problems(**limits)
    for expected in words:
        assert expected in problem
    would = re.search(
        r"(max_program_bytes|max_planned_bytes|min_delegated_share) = (\S+) would", problem
    )
    if would:
        name, value = would.groups()
        assert problems(**{name: float(value) if "share" in name else int(value)}) == []


def test_layers_that_are_not_quantized_are_named() -> None:
    skipped = {"model.head": "groups do not divide it"}
    quantization = QuantizationEntry(Quantization("8da4w"), {}, skipped, {})
    manifest = replace(MANIFEST, quantization=quantization)
    (problem,) = problems(manifest, max_program_bytes=1)
    assert "Not quantized: model.head." in problem
    assert "weights of fewer bits" in problem


def test_a_model_of_images_is_told_of_its_size() -> None:
    options = ExportOptions("image-classification", image_size=32)
    export = replace(MANIFEST.export, max_seq_len=0, cache=None, options=options)
    manifest = replace(MANIFEST, export=export)
    (problem,) = problems(manifest, max_planned_bytes=1)
    assert "or an export of smaller images (image_size is 32)." in problem
    assert "cache" not in problem
    (problem,) = problems(manifest, max_program_bytes=1)
    assert "would pass, or a smaller model." in problem


def test_what_the_runtime_of_a_device_lacks() -> None:
    operators = {"llama::custom_sdpa.out": 2, "aten::add.out": 1}
    manifest = with_method(replace(METHOD, operators=operators))
    budget = Budget(allowed_operators=["aten::*"], device="//devices:board")
    (check,) = check_budget(manifest, budget)
    assert check.problem is not None
    assert "1 operators that the runtime of //devices:board lacks" in check.problem
    assert "llama::custom_sdpa.out (2)" in check.problem
    assert "export with custom_ops = [], " in check.problem


def test_the_share_that_would_pass_is_rounded_down() -> None:
    manifest = with_method(replace(METHOD, delegation=Delegation({"a": 2}, {"b": 1}, 0.6667)))
    (problem,) = problems(manifest, min_delegated_share=0.9)
    assert "min_delegated_share = 0.6666 would pass" in problem
    assert problems(manifest, min_delegated_share=0.6666) == []


def test_a_program_without_operators_has_nothing_delegated() -> None:
    manifest = with_method(replace(METHOD, delegation=Delegation({}, {}, 0.0)))
    assert len(problems(manifest, min_delegated_share=0.1)) == 1


def test_nothing_is_limited_by_default() -> None:
    assert check_budget(MANIFEST, Budget()) == []
    assert all(getattr(Budget(), field.name) is None for field in dataclasses.fields(Budget))


def test_the_command_prints_a_table_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "manifest.json"
    schema.write(str(path), MANIFEST)
    arguments = ["budget", "--target", "//a:b", "--manifest", str(path)]
    assert main([*arguments, "--max-program-bytes", "3000000"]) == 0
    assert "at most 3000000  ok" in capsys.readouterr().out
    assert main([*arguments, "--max-program-bytes", "1", "--max-planned-bytes", "1"]) == 1
    printed = capsys.readouterr()
    assert printed.out.count("OVER") == 2
    assert printed.err.startswith("\nERROR in //a:b: The program has")


def test_the_table_goes_to_a_file_only_if_all_is_well(tmp_path: Path) -> None:
    manifest, out = tmp_path / "manifest.json", tmp_path / "checked.txt"
    schema.write(str(manifest), MANIFEST)
    arguments = ["budget", "--target", "//a:b", "--manifest", str(manifest), "--out", str(out)]
    assert main([*arguments, "--allowed-operators", "aten::*"]) == 1
    assert not out.exists()
    assert main([*arguments, "--allowed-operators", "aten::*", "my::*"]) == 0
    assert out.read_text().strip().endswith("ok")


def test_torch_is_not_imported() -> None:
    code = "import sys, rules_executorch.commands.budget; sys.exit('torch' in sys.modules)"
    path = [entry for entry in sys.path if entry]
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path}; {code}"])
    assert done.returncode == 0
