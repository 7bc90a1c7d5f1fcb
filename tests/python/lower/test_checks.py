"""What the rules refuse when a target is analysed, the commands refuse as well."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from rules_executorch.backends import find_backend
from rules_executorch.checkpoint.tasks import GENERATION, TEXT_TASKS
from rules_executorch.common.errors import UserError
from rules_executorch.export.options import ExportOptions, Quantization
from rules_executorch.export.signature import Cache, DynamicDim, Signature
from rules_executorch.lower import checks
from rules_executorch.lower.options import LowerOptions

SOURCE = Path(__file__).parents[2] / "starlark" / "refusal_cases.bzl"
CASES: dict[str, dict[str, dict[str, Any]]] = {
    node.targets[0].id: ast.literal_eval(node.value)
    for node in ast.parse(SOURCE.read_text()).body
    if isinstance(node, ast.Assign)
}


def signature(task: str, export: dict[str, Any]) -> Signature:
    """What of a signature is checked, as the export of a model of a task writes it."""
    varies = task in TEXT_TASKS and export.get("dynamic_seq_len", True)
    varies = varies and export.get("max_seq_len") != 1
    scheme, embedding = export.get("quantization"), export.get("quantization_embedding")
    group_size = export.get("quantization_group_size", 32)
    quantization = Quantization(scheme, group_size, embedding) if scheme or embedding else None
    dtype = export.get("dtype", "float32")
    cache = Cache("static_cache", 1, 1, 64, (1,), (8,), dtype, bytes=4096)
    return Signature(
        schema_version=1,
        architecture="LlamaForCausalLM",
        model_type="llama",
        base_model_prefix="model",
        adapter="static_cache",
        dtype=dtype,
        methods={},
        dynamic_dims={"sequence": DynamicDim(1, 64)} if varies else {},
        parameters=(),
        quantized=(),
        not_quantized={},
        ties={},
        cache=cache if task == GENERATION else None,
        vocab_size=64,
        max_seq_len=64,
        options=ExportOptions(task=task, quantization=quantization),
        versions={},
    )


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages of a vendor are as if they were there."""
    monkeypatch.setattr("rules_executorch.backends.needs._importable", lambda module: True)
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)


def test_there_are_cases() -> None:
    assert len(CASES["LOWER_CASES"]) > 20 and len(CASES["DEVICE_CASES"]) >= 3


@pytest.mark.parametrize("name", CASES["LOWER_CASES"])
def test_a_lowering(name: str) -> None:
    case = CASES["LOWER_CASES"][name]
    lower = dict(case.get("lower", {}))
    calibration = lower.pop("calibration", None) is not None
    options = LowerOptions(case["backend"], case.get("options", {}), **lower)
    asked = signature(case["task"], case.get("export", {}))
    refuses(case["words"], options, asked, calibration)


@pytest.mark.parametrize("name", CASES["DEVICE_CASES"])
def test_a_device(name: str) -> None:
    case = CASES["DEVICE_CASES"][name]
    options = LowerOptions(case["backend"], case["options"])
    refuses(case["words"], options, signature("image-classification", {}), False)


def refuses(words: list[str], options: LowerOptions, asked: Signature, calibration: bool) -> None:
    backend = find_backend(options.backend)
    if not words:
        checks.check(backend, options, asked, calibration)
        return
    with pytest.raises(UserError) as refused:
        checks.check(backend, options, asked, calibration)
    for word in words:
        assert word in str(refused.value)
