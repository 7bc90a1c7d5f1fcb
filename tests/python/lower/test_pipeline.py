"""Lowering: what a backend takes, what it refuses, and what the runner reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import DESCRIPTION, LLAMA, Built, make_checkpoint

from rules_executorch.backends import NAMES, check_options, find_backend
from rules_executorch.checkpoint.weights import open_weights
from rules_executorch.common.errors import UserError
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.lower import pipeline
from rules_executorch.lower.bind import bind_weights
from rules_executorch.lower.checks import check_lowering
from rules_executorch.lower.constant_methods import constant_methods
from rules_executorch.lower.options import LowerOptions
from rules_executorch.lower.pipeline import lower_program


def test_xnnpack_takes_the_linear_layers(llama_xnnpack: Built) -> None:
    counted = llama_xnnpack.lowered.delegation["forward"]
    assert counted.delegates["XnnpackBackend"] > 0
    assert counted.delegated["aten::linear"] == 15
    assert "aten::linear" not in counted.undelegated
    assert 0.3 < counted.share() < 1


def test_portable_takes_nothing(gemma_portable: Built) -> None:
    counted = gemma_portable.lowered.delegation["forward"]
    assert counted.delegates == {} and counted.share() == 0


def test_a_tied_matrix_is_counted_where_it_is_stored(
    llama_xnnpack: Built, gemma_portable: Built
) -> None:
    name = "model.embed_tokens.weight"
    assert llama_xnnpack.lowered.tied_copies == {name: ["XnnpackBackend", "constants"]}
    assert gemma_portable.lowered.tied_copies == {name: ["constants"]}
    matrix = 128 * 32 * 4
    assert gemma_portable.info.sizes["constants"] < 2 * matrix + 60_000


def test_the_runner_reads_the_contract_from_the_program(llama_xnnpack: Built) -> None:
    assert llama_xnnpack.info.constants == {
        "get_max_seq_len": 16,
        "get_max_context_len": 32,
        "enable_dynamic_shape": True,
        "use_kv_cache": True,
        "use_sdpa_with_kv_cache": False,
        "get_eos_ids": [2, 7, 9],
        "get_bos_id": 1,
        "get_vocab_size": 320,
    }


def test_the_runtime_gives_every_end_of_sequence(llama_xnnpack: Built) -> None:
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(llama_xnnpack.path)
    assert list(program.load_method("get_eos_ids").execute([])) == [2, 7, 9]
    assert list(program.load_method("get_max_seq_len").execute([])) == [16]


def test_one_end_of_sequence_stays_a_list_and_none_is_left_out(llama_xnnpack: Built) -> None:
    signature = llama_xnnpack.signature
    one = dataclasses.replace(DESCRIPTION, eos_ids=(3,), bos_id=0)
    assert constant_methods(signature, one)["get_eos_ids"] == [3]
    none = dataclasses.replace(DESCRIPTION, eos_ids=(), bos_id=None)
    bare = constant_methods(signature, none)
    assert "get_eos_ids" not in bare and "get_bos_id" not in bare


def test_memory_is_planned_for_the_last_logits_only(llama_xnnpack: Built) -> None:
    (planned,) = llama_xnnpack.info.methods["forward"].planned_bytes
    every_position = 16 * 320 * 4
    assert planned - llama_xnnpack.signature.cache.bytes < 8 * every_position
    assert llama_xnnpack.info.methods["forward"].outputs[0].shape == [1, 1, 320]


def test_bfloat16_on_xnnpack_is_refused_before_any_work() -> None:
    with pytest.raises(UserError) as refused:
        check_lowering(find_backend("xnnpack"), LowerOptions(backend="xnnpack"), "bfloat16")
    message = str(refused.value)
    assert "xnnpack" in message and "bfloat16" in message
    assert "float32" in message and "allow_undelegated" in message


def test_a_backend_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = dataclasses.replace(find_backend("portable"), name="idle", runtime_name="Idle")
    monkeypatch.setattr(pipeline, "find_backend", lambda name: idle)
    checkpoint = make_checkpoint(tmp_path, LLAMA | {"num_hidden_layers": 1})
    exported = export_model(checkpoint.config, ExportOptions(max_cache_len=4))
    bind_weights(exported.program, exported.signature, open_weights([checkpoint.weights_path]))
    constants = constant_methods(exported.signature, DESCRIPTION)
    with pytest.raises(UserError, match="idle takes nothing of a float32 program"):
        lower_program(exported.program, exported.signature, LowerOptions("idle"), constants)


def test_unknown_backend() -> None:
    with pytest.raises(UserError) as refused:
        find_backend("xnnpck")
    assert "xnnpck" in str(refused.value) and "xnnpack" in str(refused.value)


def test_unknown_option_lists_those_there_are() -> None:
    with pytest.raises(UserError) as refused:
        check_options(find_backend("xnnpack"), {"per_op": True})
    assert "per_op" in str(refused.value) and "per_op_mode" in str(refused.value)
    with pytest.raises(UserError, match="It has none"):
        check_options(find_backend("portable"), {"per_op": True})


def test_option_of_another_type() -> None:
    with pytest.raises(UserError, match="per_op_mode"):
        check_options(find_backend("xnnpack"), {"per_op_mode": "yes"})


@pytest.mark.parametrize("name", NAMES)
def test_every_backend_declares_itself(name: str) -> None:
    backend = find_backend(name)
    assert backend.name == name and backend.dtypes
    assert backend.options_schema["additionalProperties"] is False
    assert isinstance(backend.runs_here(), bool)
