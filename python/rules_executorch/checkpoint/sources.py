"""Sorting the files of a checkpoint by what they are, and refusing the unsafe ones."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

from rules_executorch.checkpoint import strict_json
from rules_executorch.checkpoint.file_names import COMPANIONS, PICKLES, SENTENCEPIECE
from rules_executorch.checkpoint.sharded import by_name, few
from rules_executorch.common.errors import UserError

_OTHER_WEIGHTS = (".h5", ".msgpack", ".onnx", ".tflite", ".npz", ".pte", ".ot")
_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MODULES = "modules.json"
# No leftovers either; the rules know them apart.
_COMPANIONS = frozenset({*COMPANIONS, "huggingface.json", "tekken.json"})

_CONVERT = (
    "Convert them once, in an environment where running the author's code is acceptable:"
    " python -c \"import transformers as t; t.AutoModelForCausalLM.from_pretrained('FOLDER')"
    ".save_pretrained('SAFE_FOLDER')\" writes safetensors; then give those files in `srcs`, and"
    " leave the pickled ones out."
)


@dataclasses.dataclass(frozen=True)
class Sources:
    """The files of a checkpoint by their role; paths, or None where there is none."""

    safetensors: tuple[str, ...] = ()
    index: str | None = None
    gguf: str | None = None
    config: str | None = None
    generation_config: str | None = None
    tokenizer: str | None = None
    sentencepiece: str | None = None
    tokenizer_config: str | None = None
    chat_template: str | None = None
    readme: str | None = None
    modules: str | None = None
    """`modules.json` of a model of sentence-transformers."""
    module_files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Files in the folders that `modules.json` names, by their path below the checkpoint's root."""
    passed_over: tuple[str, ...] = ()
    """What is given and not needed, by its path below the root, sorted."""

    @property
    def format(self) -> str:
        """`safetensors` or `gguf`."""
        return "gguf" if self.gguf else "safetensors"

    @property
    def weights(self) -> tuple[str, ...]:
        """Every file that holds weights."""
        return (self.gguf,) if self.gguf else self.safetensors


def names_below_root(paths: Sequence[str]) -> dict[str, str]:
    """Where each file lies in its checkpoint.

    The root is the folder of the config.json that is nearest to the top, without one that of the
    weights; if it is the first folder of a model of sentence-transformers, `0_Transformer`, the
    folder above it is, and what is in it counts as if it were beside it. A file that lies elsewhere
    counts as if it lay in the root.

    Args:
        paths: all files of the checkpoint.

    Returns:
        the path of each file by its name below the root, `config.json` or `1_Pooling/config.json`.

    Raises:
        UserError: two files have the same name.
    """

    def nearest(candidates: list[str]) -> list[str]:
        depth = min((path.count("/") for path in candidates), default=0)
        return [path for path in candidates if path.count("/") == depth]

    configs = nearest([path for path in paths if os.path.basename(path) == "config.json"])
    first = [path for path in configs if _first_module(os.path.dirname(path))]
    if len(configs) > 1 and first:
        configs = first
    by_name(configs)
    anchors = configs or nearest(
        [p for p in paths if p.lower().endswith((".safetensors", ".gguf"))]
    )
    folder = os.path.dirname(anchors[0]) if anchors else ""
    root = os.path.dirname(folder) if _first_module(folder) else folder
    found: dict[str, str] = {}
    for path in paths:
        name = os.path.basename(path)
        if os.path.dirname(path) != folder and path.startswith(f"{root}/" if root else ""):
            name = path[len(root) + 1 :] if root else path
        if found.setdefault(name, path) != path:
            by_name([found[name], path])
    return found


def _first_module(folder: str) -> bool:
    return os.path.basename(folder).startswith("0_")


def _refuse_no_weights(names: Mapping[str, str]) -> UserError:
    """What there is instead of weights that can be read."""
    paths = list(names.values())
    if any(os.path.basename(name) == "adapter_config.json" for name in names) or any(
        os.path.basename(name).startswith("adapter_") for name in names
    ):
        return UserError(
            "These are the files of an adapter (LoRA), not of a whole model: it changes the weights"
            " of another checkpoint, which adapter_config.json names.",
            instead="Merge it into its base model once (`merge_and_unload` of the peft package,"
            " then `save_pretrained`) and give those files in `srcs`.",
        )
    pickled = sorted(path for path in paths if path.lower().endswith(PICKLES))
    if pickled:
        return UserError(
            f"The only weights are pickled: {few(pickled)}. Reading a pickle runs code of its"
            " author, so they are never opened.",
            instead=_CONVERT,
        )
    below = sorted(path for path in paths if path.lower().endswith((".safetensors", ".gguf")))
    if below:
        return UserError(
            f"The only weights lie in folders below the one of config.json, which are passed over:"
            f" {few(below)}.",
            instead="Give the files of one folder of the hub, or weights beside config.json.",
        )
    others = sorted(path for path in paths if path.lower().endswith(_OTHER_WEIGHTS))
    found = f" {few(others)} cannot be read here." if others else ""
    return UserError(
        f"There are no weights among the {len(paths)} files of the model.{found}",
        instead="Add its *.safetensors files, or one .gguf file, to `srcs` of the hf_model.",
    )


def _choose_safetensors(top: Mapping[str, str]) -> tuple[tuple[str, ...], str | None]:
    """The weights that transformers would take, and their index if they are sharded."""
    files = {
        name: path
        for name, path in top.items()
        if name.endswith(".safetensors") and not name.startswith("adapter_")
    }
    indexes = {n: p for n, p in top.items() if n.endswith(".safetensors.index.json")}
    if _WHOLE in files and _INDEX not in indexes:
        return (files[_WHOLE],), None
    if _INDEX in indexes:
        return tuple(files.values()), indexes[_INDEX]
    if len(indexes) > 1:
        raise UserError(
            f"There are {len(indexes)} indexes of shards: {few(list(indexes.values()))}.",
            instead="Keep the one of the wanted variant in `srcs` of the hf_model.",
        )
    if len(files) > 1 and not indexes:
        raise UserError(
            f"There are {len(files)} safetensors files but no index: {few(list(files.values()))}.",
            instead="Add `model.safetensors.index.json` to `srcs` of the hf_model.",
        )
    return tuple(files.values()), next(iter(indexes.values()), None)


def find_sources(
    paths: Sequence[str], *, names: Sequence[str] | None = None, weights_only: bool = False
) -> Sources:
    """Finds the role of each file of a checkpoint by its name.

    What lies in a folder below the root is passed over, unless `modules.json` names the folder;
    and so are weights in another format beside safetensors, pictures and the like.

    Args:
        paths: all files of the checkpoint, in any order.
        names: where each of them lies below the checkpoint's root; see `names_below_root`, which
            tells it from the paths alone, where it is not given.
        weights_only: the paths are the weights alone, so that other files may be absent, and their
            folders say nothing.

    Raises:
        UserError: no weights that can be read, weights in two formats, an adapter's weights alone,
            two files of one name, or no config.json beside safetensors.
    """
    if names is not None:
        named = dict(zip(names, paths, strict=True))
    elif weights_only:
        named = by_name(sorted(paths))
    else:
        named = names_below_root(sorted(paths))
    top = {name: path for name, path in sorted(named.items()) if "/" not in name}
    gguf = [path for name, path in top.items() if name.lower().endswith(".gguf")]
    safetensors, index = _choose_safetensors(top)
    if len(gguf) > 1:
        raise UserError(
            f"There are {len(gguf)} GGUF files: {few(gguf)}.",
            instead="Give one. `llama-gguf-split --merge` joins the parts of a split model.",
        )
    others = [*safetensors, *filter(None, [index])]
    if gguf and others:
        raise UserError(
            f"There are weights in two formats: {few([*gguf, *others])}.",
            instead="Keep one of the formats in `srcs` of the hf_model.",
        )
    if not gguf and not safetensors and not index:
        raise _refuse_no_weights(named)
    if "config.json" not in top and not gguf and not weights_only:
        raise UserError(
            "There is no config.json among the files of the model, so its architecture is unknown.",
            instead="Add the config.json of the model's repository to `srcs` of the hf_model.",
        )
    module_files = _module_files(named)
    found = Sources(
        safetensors=safetensors,
        index=index,
        gguf=gguf[0] if gguf else None,
        config=top.get("config.json"),
        generation_config=top.get("generation_config.json"),
        tokenizer=top.get("tokenizer.json"),
        sentencepiece=next((top[name] for name in SENTENCEPIECE if name in top), None),
        tokenizer_config=top.get("tokenizer_config.json"),
        chat_template=top.get("chat_template.jinja"),
        readme=top.get("README.md"),
        modules=top.get(_MODULES),
        module_files=module_files,
    )
    roles = {value for value in vars(found).values() if isinstance(value, str)}
    roles |= {*found.safetensors, *module_files.values()}
    passed_over = [
        name
        for name, path in named.items()
        if path not in roles
        and name not in _COMPANIONS
        and not name.upper().startswith(("LICENSE", "NOTICE"))
    ]
    return dataclasses.replace(found, passed_over=tuple(sorted(passed_over)))


def _module_files(named: Mapping[str, str]) -> dict[str, str]:
    """The files in the folders that `modules.json` names.

    Raises:
        UserError: it is not a list of objects with a `path`.
    """
    path = named.get(_MODULES)
    if path is None or not os.path.exists(path):
        return {}
    modules = strict_json.read(path, limit=1_000_000)
    entries = modules if isinstance(modules, list) else [None]
    folders = [entry.get("path") if isinstance(entry, dict) else None for entry in entries]
    if not all(isinstance(folder, str) for folder in folders):
        raise UserError(
            f"{path} is not a list of modules, each with a `path`.",
            instead="Fetch modules.json again from the model's repository.",
        )
    return {
        name: found
        for name, found in sorted(named.items())
        if name.rpartition("/")[0] in {folder for folder in folders if folder}
        and not name.lower().endswith(PICKLES)
    }
