"""Operators beyond torch's own that a graph or a program may call."""

from __future__ import annotations

from collections.abc import Iterable

LLM_NAMESPACE = "llama::"


def load_llm_operators() -> None:
    """Registers ExecuTorch's LLM operators with torch and with the runtime of this process.

    They come in `libcustom_ops_aot_lib` of the executorch wheel.
    """
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401


def load_operators_of(names: Iterable[str]) -> None:
    """Registers what a program needs.

    Args:
        names: the program's operators, for example `aten::add.out` or `llama::custom_sdpa.out`.
    """
    if any(name.startswith(LLM_NAMESPACE) for name in names):
        load_llm_operators()
