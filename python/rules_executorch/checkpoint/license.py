"""Where a model comes from, and what its licence is.

Licences have the hub's names, which for most are SPDX identifiers in lower case
(https://huggingface.co/docs/hub/repositories-licenses).
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Sequence

from rules_executorch.checkpoint import model_card, strict_json
from rules_executorch.checkpoint.gguf.header import GgufFile
from rules_executorch.checkpoint.model_card import ModelCard
from rules_executorch.common.errors import UserError

UNKNOWN = "unknown"
"""How a deny list calls a licence that is not stated."""

_MAX_SOURCE_BYTES = 65_536


@dataclasses.dataclass(frozen=True)
class Source:
    """A repository of the hub at one commit; what `huggingface.json` of `@NAME//:files` says."""

    repo: str
    revision: str

    @property
    def package_url(self) -> str:
        """`pkg:huggingface/OWNER/NAME@REVISION`."""
        return f"pkg:huggingface/{self.repo}@{self.revision}"

    @property
    def address(self) -> str:
        """The page of this commit."""
        return f"https://huggingface.co/{self.repo}/tree/{self.revision}"


def read_source(path: str) -> Source:
    """Reads `huggingface.json`.

    Raises:
        UserError: it does not name a repository and a commit.
    """
    value = strict_json.read_object(path, limit=_MAX_SOURCE_BYTES)
    repo, revision = value.get("repo"), value.get("revision")
    if (
        not isinstance(repo, str)
        or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*", repo)
        or not isinstance(revision, str)
        or not re.fullmatch(r"[0-9a-f]{40}", revision)
    ):
        raise UserError(
            f"{path} does not name a repository of the hub and a commit.",
            instead="Leave it to the module extension `huggingface`, which writes it.",
        )
    return Source(repo, revision)


def card_of(readme: str | None, gguf: str | None) -> ModelCard:
    """What the checkpoint states: its model card where there is one, else a GGUF file's header."""
    card = model_card.read_card(readme) if readme else ModelCard()
    if gguf:
        stated = model_card.card_of_gguf(GgufFile(gguf).metadata)
        merged = {
            field.name: getattr(card, field.name) or getattr(stated, field.name)
            for field in dataclasses.fields(card)
        }
        card = ModelCard(**merged)
    return card


def check_license(license: str | None, declared: str | None, denied: Sequence[str]) -> None:
    """Refuses a model for its licence.

    Args:
        license: what the checkpoint states.
        declared: attribute `license` of the hf_model.
        denied: licences, also with `*`; `unknown` denies a model that states none.

    Raises:
        UserError: the checkpoint states another licence than its hf_model, or a denied one.
    """
    if license and declared and license.lower() != declared.lower():
        raise UserError(
            f'license = "{declared}" is not what the checkpoint states, which is "{license}".',
            instead=f'Write license = "{license}", or leave the attribute out.',
        )
    for name in (declared or license or UNKNOWN).split(model_card.AND):
        pattern = next((p for p in denied if fnmatch.fnmatchcase(name.lower(), p.lower())), None)
        if pattern is not None:
            raise _denied(name, pattern)


def _denied(name: str, pattern: str) -> UserError:
    if name == UNKNOWN:
        said = "states no licence"
        mend = "Write the licence that you know it has into `license` of the hf_model."
    else:
        said = f"has the licence {name}"
        mend = "Use another model, or take the licence off the list once it is cleared."
    return UserError(
        f'The model {said}, which "{pattern}" in'
        " @rules_executorch//executorch/settings:denied_licenses denies.",
        instead=mend,
    )
