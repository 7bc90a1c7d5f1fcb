"""OpenVINO programs, executed by the runtime of the toolchain."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_programs
import torch
from transformers import AutoModelForCausalLM

from rules_executorch.backends import find_backend, prepare_runtime
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError


def test_this_machine_executes_it() -> None:
    assert find_backend("openvino").runs_here()


def test_logits_are_those_of_eager_over_several_calls(
    llama: tiny_programs.Exported, tmp_path: Path
) -> None:
    from executorch.runtime import Runtime

    path = tmp_path / "model.pte"
    tiny_programs.lower(llama, path, "openvino")
    prepare_runtime(["OpenvinoBackend"])
    method = Runtime.get().load_program(path).load_method("forward")
    model = AutoModelForCausalLM.from_config(llama.config).eval()
    weights = open_weights([llama.weights_path])
    model.load_state_dict({name: weights.tensor(name) for name in weights.names()})
    ids = torch.randint(128, (1, 16), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = model(ids).logits
    for start in range(0, 16, 4):
        positions = torch.arange(start, start + 4)
        (logits,) = method.execute([ids[:, start : start + 4].contiguous(), positions])
        torch.testing.assert_close(
            logits[0, 0], expected[0, start + 3], rtol=1e-4, atol=1e-4, msg=f"from {start}"
        )
        assert logits[0, 0].argmax() == expected[0, start + 3].argmax()


def test_a_varying_length_is_refused(dynamic_llama: tiny_programs.Exported, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        tiny_programs.lower(dynamic_llama, tmp_path / "model.pte", "openvino")
    message = str(refused.value)
    assert "openvino takes fixed shapes only" in message and "dynamic_seq_len = False" in message
