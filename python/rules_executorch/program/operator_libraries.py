"""Operators beyond torch's own that a graph or a program may call."""

from __future__ import annotations

from collections.abc import Iterable

LLM_NAMESPACE = "llama::"
QUANTIZED_NAMESPACE = "quantized_decomposed::"
NAMESPACES = (LLM_NAMESPACE, QUANTIZED_NAMESPACE)


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
    found = [name for name in names if name.startswith(NAMESPACES)]
    if any(name.startswith(LLM_NAMESPACE) for name in found):
        load_llm_operators()
    if any(name.startswith(QUANTIZED_NAMESPACE) for name in found):
        # `libquantized_ops_aot_lib` registers with the runtime of this process when it is loaded.
        import executorch.kernels.quantized  # noqa: F401
