"""Chat templates, which are code of a stranger."""

from __future__ import annotations

import pytest

from rules_executorch.checkpoint.chat_template import render, token_text
from rules_executorch.common.errors import UserError

HELLO = [{"role": "user", "content": "Hello <b> & 'you'"}]


def test_renders_messages_and_tokens() -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] }}{{ eos_token }}"
        "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    assert render(template, HELLO, settings) == "<s>[user] Hello <b> & 'you'</s>[assistant]"


def test_matches_transformers() -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    template = (
        "{%- if messages[0].role == 'system' -%}\n  {{ messages[0].content }}\n{%- endif %}\n"
        "{% for m in messages %}\n  {% if loop.index0 > 3 %}{% break %}{% endif %}\n"
        "  {{- m.role + ': ' + m.content | trim }}\n{% endfor %}\n{{ messages | tojson }}"
        "{% if tools is defined and tools %}{{ tools }}{% endif %}"
    )
    conversation = [{"role": "system", "content": " é "}, *HELLO]
    expected, _ = render_jinja_template(
        [conversation], chat_template=template, add_generation_prompt=True
    )
    assert render(template, conversation, {}) == expected[0]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ messages.append(1) }}",
        "{{ ('%s' % messages).format.__self__.__class__.__base__ }}",
    ],
)
def test_the_sandbox_holds(template: str) -> None:
    with pytest.raises(UserError, match="chat template"):
        render(template, HELLO, {})


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for %}", "could not be rendered"),
        ("{{ raise_exception('System role not supported') }}", "System role not supported"),
        ("{{ messages[9].content }}", "could not be rendered"),
        ("{{ 1 / 0 }}", "could not be rendered"),
    ],
)
def test_refusals_are_sentences(template: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        render(template, HELLO, {})
    assert "--no-chat-template" in (caught.value.instead or "")


def test_token_text() -> None:
    assert token_text({"x": "a"}, "x") == "a"
    assert token_text({"x": {"content": "b", "lstrip": False}}, "x") == "b"
    assert token_text({"x": None}, "x") is None
    assert token_text({}, "x") is None
