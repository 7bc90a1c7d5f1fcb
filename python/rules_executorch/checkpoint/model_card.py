"""What a checkpoint says of itself: licence, base models, data sets.

From the front matter of a model card
(https://huggingface.co/docs/hub/model-cards, "Model card metadata"), or from the keys `general.*`
of a GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "General metadata").
Nothing of it is trusted: what does not have the form of a name is left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

_FRONT_MATTER_BYTES = 65_536
_MAX_NAMES = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ +-]{0,95}(?:/[A-Za-z0-9][A-Za-z0-9._ +-]{0,95})?")
_LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,59}")
AND = " AND "

# How YAML writes nothing; the loader that is used here has strings alone.
_NULLS = frozenset({"null", "Null", "NULL", "~"})

_HUB = re.compile(r"https://huggingface\.co/(?:datasets/)?([^/\s]+/[^/\s?#]+)")


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """What a card states; empty where it states nothing.

    Attributes:
        license: the hub's name of the licence, mostly SPDX in lower case: `apache-2.0`, `other`;
            several are joined by AND.
        license_name, license_link: of a licence that has no such name.
        base_models: repositories that the model was made from, `owner/name`.
        base_relation: how: `finetune`, `quantized`, `merge`, `adapter`.
        datasets: repositories that it was trained on.
    """

    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    base_models: tuple[str, ...] = ()
    base_relation: str | None = None
    datasets: tuple[str, ...] = ()


def front_matter(text: str) -> str:
    """The YAML between the first two lines `---`; empty where there is none."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    if not text.startswith("---\n"):
        return ""
    body, end, _ = text[4:].partition("\n---")
    return body if end else ""


def read_card(path: str) -> ModelCard:
    """Reads the front matter of a README.md; one that is not YAML states nothing."""
    import yaml

    with open(path, "rb") as file:
        text = file.read(_FRONT_MATTER_BYTES).decode("utf-8", errors="replace")
    try:
        # Strings, lists and mappings alone: what other tags mean is not wanted here.
        value = yaml.load(front_matter(text), yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return ModelCard()
    return ModelCard(
        license=_license(value.get("license")),
        license_name=_line(value.get("license_name")),
        license_link=_line(value.get("license_link")),
        base_models=_names(value.get("base_model")),
        base_relation=_matching(value.get("base_model_relation"), _LICENSE),
        datasets=_names(value.get("datasets")),
    )


def card_of_gguf(keys: Mapping[str, Any]) -> ModelCard:
    """The same from the header of a GGUF file."""

    def sources(kind: str) -> tuple[str, ...]:
        count = keys.get(f"general.{kind}.count")
        found = []
        for index in range(min(count, _MAX_NAMES) if type(count) is int else 0):
            url = keys.get(f"general.{kind}.{index}.repo_url")
            hub = _HUB.fullmatch(url) if isinstance(url, str) else None
            owner = keys.get(f"general.{kind}.{index}.organization")
            name = keys.get(f"general.{kind}.{index}.name")
            if hub:
                found.append(hub[1])
            elif isinstance(owner, str) and isinstance(name, str):
                found.append(f"{owner}/{name}".replace(" ", "-"))
            elif isinstance(name, str):
                found.append(name)
        return _names(found)

    return ModelCard(
        license=_license(keys.get("general.license")),
        license_name=_line(keys.get("general.license.name")),
        license_link=_line(keys.get("general.license.link")),
        base_models=sources("base_model"),
        datasets=tuple(dict.fromkeys(sources("dataset") + _names(keys.get("general.datasets")))),
    )


def _license(value: Any) -> str | None:
    values = value if isinstance(value, list) else [value]
    found = [name for item in values[:_MAX_NAMES] if (name := _matching(item, _LICENSE))]
    return AND.join(dict.fromkeys(found)) or None


def _matching(value: Any, form: re.Pattern[str]) -> str | None:
    if not isinstance(value, str) or value in _NULLS or not form.fullmatch(value):
        return None
    return value


def _line(value: Any) -> str | None:
    if not isinstance(value, str) or value in _NULLS or not value.strip() or len(value) > 500:
        return None
    return value.strip() if value.strip().isprintable() else None


def _names(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    found = [name for item in values[:_MAX_NAMES] if (name := _matching(item, _NAME))]
    return tuple(dict.fromkeys(found))
