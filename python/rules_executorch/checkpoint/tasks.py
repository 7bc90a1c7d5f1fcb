"""What a model is for, the class of transformers that makes it, and what it gives."""

from __future__ import annotations

import dataclasses

GENERATION = "text-generation"


@dataclasses.dataclass(frozen=True)
class Task:
    """One task, named as the hub names it.

    Attributes:
        auto_class: the class of transformers that picks a model by its config.
        mapping: the table of `transformers.models.auto.modeling_auto` behind it, by model type.
        outputs: attributes of the model's result that the program returns, in this order; those
            that a model does not have are left out.
        made: what such a model is, in words.
    """

    auto_class: str
    mapping: str
    outputs: tuple[str, ...]
    made: str


TASKS: dict[str, Task] = {
    GENERATION: Task(
        "AutoModelForCausalLM",
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
        ("logits",),
        "causal language model",
    ),
    "audio-classification": Task(
        "AutoModelForAudioClassification",
        "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
        ("logits",),
        "classifier of sounds",
    ),
    "automatic-speech-recognition": Task(
        "AutoModelForCTC",
        "MODEL_FOR_CTC_MAPPING_NAMES",
        ("logits",),
        "recognizer of speech by CTC",
    ),
    "depth-estimation": Task(
        "AutoModelForDepthEstimation",
        "MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES",
        ("predicted_depth",),
        "estimator of depth",
    ),
    "feature-extraction": Task(
        "AutoModel", "MODEL_MAPPING_NAMES", ("last_hidden_state",), "model without a head"
    ),
    "fill-mask": Task(
        "AutoModelForMaskedLM",
        "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
        ("logits",),
        "masked language model",
    ),
    "image-classification": Task(
        "AutoModelForImageClassification",
        "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
        ("logits",),
        "classifier of images",
    ),
    "image-feature-extraction": Task(
        "AutoModel",
        "MODEL_FOR_IMAGE_MAPPING_NAMES",
        ("last_hidden_state", "pooler_output"),
        "model of images without a head",
    ),
    "image-segmentation": Task(
        "AutoModelForSemanticSegmentation",
        "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",
        ("logits",),
        "model that segments images by class",
    ),
    "object-detection": Task(
        "AutoModelForObjectDetection",
        "MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES",
        ("logits", "pred_boxes"),
        "detector of objects",
    ),
    "question-answering": Task(
        "AutoModelForQuestionAnswering",
        "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
        ("start_logits", "end_logits"),
        "model that finds an answer in a text",
    ),
    "text-classification": Task(
        "AutoModelForSequenceClassification",
        "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
        ("logits",),
        "classifier of texts",
    ),
    "token-classification": Task(
        "AutoModelForTokenClassification",
        "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
        ("logits",),
        "classifier of words",
    ),
}
"""`bazel run //tools/tables:update` writes the names into what the rules know."""

TEXT_TASKS = (GENERATION, "text-classification")
"""Those whose models take nothing but texts, whatever the checkpoint."""
