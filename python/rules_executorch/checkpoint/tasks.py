"""What a model is for, and the class of transformers that makes it."""

from __future__ import annotations

import dataclasses

GENERATION = "text-generation"


@dataclasses.dataclass(frozen=True)
class Task:
    """One task, named as the hub names it.

    Attributes:
        auto_class: the class of transformers that picks a model by its config.
        mapping: the table of `transformers.models.auto.modeling_auto` behind it, by model type.
        output: the attribute of the model's result that the program returns.
        made: what such a model is, in words.
    """

    auto_class: str
    mapping: str
    output: str
    made: str


TASKS: dict[str, Task] = {
    GENERATION: Task(
        "AutoModelForCausalLM",
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
        "logits",
        "causal language model",
    ),
    "feature-extraction": Task(
        "AutoModel", "MODEL_MAPPING_NAMES", "last_hidden_state", "model without a head"
    ),
    "image-classification": Task(
        "AutoModelForImageClassification",
        "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
        "logits",
        "classifier of images",
    ),
    "text-classification": Task(
        "AutoModelForSequenceClassification",
        "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
        "logits",
        "classifier of texts",
    ),
}
"""`bazel run //tools/tables:update` writes the names into what the rules know."""

TEXT_TASKS = (GENERATION, "text-classification")
"""Those whose models take nothing but texts, whatever the checkpoint."""
