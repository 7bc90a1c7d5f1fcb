"""Rendering a chat template in a sandbox: it is code of the checkpoint's author."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rules_executorch.common.errors import UserError

_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


def token_text(settings: Mapping[str, Any], name: str) -> str | None:
    """A special token of tokenizer_config.json, written as text or as an object."""
    value = settings.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _tojson(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def render(
    template: str, messages: Sequence[Mapping[str, str]], settings: Mapping[str, Any]
) -> str:
    """The prompt that a chat template makes of messages, ending where the answer begins.

    The template runs in Jinja's immutable sandbox with the names that transformers gives it:
    `messages`, `add_generation_prompt`, the special tokens, `raise_exception`, `strftime_now`.

    Args:
        template: Jinja source.
        messages: objects with `role` and `content`.
        settings: tokenizer_config.json as data.

    Raises:
        UserError: the template is not valid, does something the sandbox forbids, or refuses the
            messages.
    """
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    tokens = {name: token_text(settings, name) for name in _TOKENS}
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            add_generation_prompt=True,
            **{name: token for name, token in tokens.items() if token is not None},
        )
    except Exception as error:  # The template is a stranger's program: any error may come out.
        raise UserError(
            f"The chat template of the model could not be rendered: {error}.",
            instead="Use --no-chat-template to give the prompt as it is, or --system only with a"
            " model whose template takes a system message.",
        ) from error
