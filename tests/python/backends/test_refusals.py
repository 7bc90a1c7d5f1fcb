"""What a backend cannot take is refused in words, before any work."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import tiny_programs

from rules_executorch.backends import NAMES, Needs, find_backend
from rules_executorch.common.errors import UserError
from rules_executorch.lower.checks import check_lowering
from rules_executorch.lower.options import LowerOptions

SDK = {
    "mediatek": ("mtk_converter, mtk_neuron", "NeuroPilot Express SDK", "executorch_toolchain"),
    "qualcomm": ("QNN_SDK_ROOT", "never downloaded", 'options = {"sdk_root"'),
    "samsung": ("EXYNOS_AI_LITECORE_ROOT", "never downloaded", 'options = {"sdk_root"'),
}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", SDK)
def test_an_absent_sdk_is_named_at_once_and_not_fetched(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("QNN_SDK_ROOT", "EXYNOS_AI_LITECORE_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UserError) as refused:
        check_lowering(find_backend(name), LowerOptions(name), "float32")
    for words in SDK[name]:
        assert words in str(refused.value)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("soc", ["SM8550", "SM8650", "SM8750"])
def test_a_qualcomm_chip_is_known_without_the_sdk(
    soc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the wheel has of the backend goes as far as the partitioner and its compile specs."""
    monkeypatch.setenv("QNN_SDK_ROOT", "")
    qualcomm = find_backend("qualcomm")
    (partitioner,) = qualcomm.partitioners({"soc": soc, "sdk_root": "/no/sdk"})
    from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset
    from executorch.backends.qualcomm.serialization.qc_schema_serialize import (
        flatbuffer_to_option,
    )

    (spec,) = partitioner.compiler_specs_snapshot
    options = flatbuffer_to_option(spec.value)
    assert options.soc_info.soc_model == QcomChipset[soc]
    assert set(qualcomm.options_schema["properties"]["soc"]["enum"]) <= set(QcomChipset.__members__)


@pytest.mark.usefixtures("no_network")
def test_what_the_wheel_has_of_mediatek_and_samsung() -> None:
    with pytest.raises(ModuleNotFoundError, match="mtk_converter"):
        find_backend("mediatek").partitioners({"platform": "mt6991"})
    samsung = find_backend("samsung")
    with pytest.raises(ModuleNotFoundError, match="executorch.backends.samsung.python"):
        samsung.partitioners({"chipset": "E9955"})
    from executorch.backends.samsung.serialization.compile_options import (
        gen_samsung_backend_compile_spec,
    )

    chips = samsung.options_schema["properties"]["chipset"]["enum"]
    assert len({gen_samsung_backend_compile_spec(chip).value for chip in chips}) == len(chips)


@pytest.mark.parametrize("value", ["", "FOLDER"])
def test_a_folder_that_is_no_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    # Its own code takes an empty variable for a sign that all is well.
    monkeypatch.setenv("QNN_SDK_ROOT", value.replace("FOLDER", str(tmp_path)))
    with pytest.raises(UserError, match="nothing says where|has no lib/x86_64"):
        check_lowering(find_backend("qualcomm"), LowerOptions("qualcomm"), "float32")


def test_the_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", "/elsewhere")
    needs = find_backend("qualcomm").needs
    assert needs.sdk_root({"sdk_root": "/here"}) == "/here"
    assert needs.sdk_root({}) == "/elsewhere"


def test_packages_that_are_not_installed() -> None:
    needs = Needs(group="arm", modules=("no_such_module.inside", "json"))
    with pytest.raises(UserError) as refused:
        needs.check("tosa", {})
    message = str(refused.value)
    assert "no_such_module.inside" in message and "json" not in message.split(",")[0]
    assert 'packages = "@executorch_toolchains//:arm"' in message


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"portable", "mlx"} - set(SDK)))
def test_bfloat16_is_refused_with_the_dtypes_that_are_taken(name: str) -> None:
    backend = find_backend(name)
    with pytest.raises(UserError) as refused:
        check_lowering(backend, LowerOptions(name), "bfloat16")
    message = str(refused.value)
    assert f"{name} takes nothing of a bfloat16 program" in message
    assert 'dtype = "float32"' in message


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_documented_and_an_unknown_one_lists_them(name: str) -> None:
    backend = find_backend(name)
    known = backend.options_schema["properties"]
    assert all(option["description"] and option["type"] for option in known.values())
    with pytest.raises(UserError) as refused:
        check_lowering(backend, LowerOptions(name, {"juggle": True}), "float32")
    assert "juggle" in str(refused.value)
    assert all(option in str(refused.value) for option in known)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ethos_u", {"target": "ethos-u99"}),
        ("coreml", {"compute_precision": "int4"}),
        ("vulkan", {"force_fp16": "yes"}),
        ("tosa", {"scheme": "int3"}),
    ],
)
def test_a_value_that_an_option_does_not_take(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"The option {next(iter(options))} of the backend {name}"):
        check_lowering(find_backend(name), LowerOptions(name, options), "float32")


def test_a_backend_runs_here_or_it_does_not() -> None:
    runs = {name for name in NAMES if find_backend(name).runs_here()}
    assert runs == {"portable", "xnnpack", "openvino"}


def test_mlx_takes_bfloat16(tmp_path: Path) -> None:
    config = tiny_programs.LLAMA | {"dtype": "bfloat16", "num_hidden_layers": 1}
    options = tiny_programs.dataclasses.replace(tiny_programs.GENERATION, dtype="bfloat16")
    exported = tiny_programs.export(tmp_path, config, options, "bfloat16")
    lowered, info = tiny_programs.lower(exported, tmp_path / "model.pte", "mlx")
    assert lowered.delegation["forward"].share() == 1
    assert info.methods["forward"].outputs[0].dtype == "bfloat16"
