"""What the reference says of an argument names every value that it takes."""

import types
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Rule, argument: where its values are in the tables.
VALUES = {
    ("executorch_export", "custom_ops"): "CUSTOM_OPS",
    ("executorch_export", "dtype"): "DTYPES",
    ("executorch_export", "input_form"): "INPUT_FORMS",
    ("executorch_export", "logits"): "LOGITS",
    ("executorch_export", "quantization"): "QUANTIZATIONS",
    ("executorch_export", "quantization_embedding"): "EMBEDDING_QUANTIZATIONS",
    ("hf_model", "task"): "TASKS",
    ("tiny_checkpoint", "dtype"): "DTYPES",
}


def options() -> dict[str, list[str]]:
    """The tables, which are nothing but literals that Python reads the same way."""
    text = (REPOSITORY / "executorch/private/tables/options.bzl").read_text()
    values = {"visibility": lambda _: None, "struct": types.SimpleNamespace}
    exec(compile(text, "options.bzl", "exec"), values)
    return values


@pytest.mark.parametrize(("rule", "argument"), VALUES)
def test_the_reference_names_every_value(rule: str, argument: str) -> None:
    page = (REPOSITORY / "docs/rules.md").read_text()
    section = page.partition(f"\n### `{rule}`\n")[2].partition("\n### ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith(f"| `{argument}` |")]
    missing = [value for value in options()[VALUES[rule, argument]] if f"`{value}`" not in row]
    assert missing == []
