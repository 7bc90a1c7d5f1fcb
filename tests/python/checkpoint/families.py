"""Tiny configs of many families, by model type of transformers: task, and values of the config."""

from __future__ import annotations

from typing import Any

_GENERATION, _FEATURES = "text-generation", "feature-extraction"
_IMAGES, _TEXTS = "image-classification", "text-classification"

_TEXT: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
}
_DECODER = _TEXT | {"num_key_value_heads": 2}
_EXPERTS = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
_LATENT = _DECODER | {
    **_EXPERTS,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
}
_GPT = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
_SOUND = _TEXT | {
    "conv_dim": [16, 16],
    "conv_stride": [5, 2],
    "conv_kernel": [10, 3],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
_BACKBONE = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16],
    "depths": [1, 1],
    "out_features": ["stage2"],
}

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": (_GENERATION, _DECODER),
    "mistral": (_GENERATION, _DECODER),
    "qwen2": (_GENERATION, _DECODER),
    "gpt_neox": (_GENERATION, _TEXT),
    # More than ten, so that the order of their numbers is not that of the letters.
    "mixtral": (_GENERATION, _DECODER | {"num_local_experts": 12, "num_experts_per_tok": 2}),
    "qwen2_moe": (
        _GENERATION,
        _DECODER | _EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 16},
    ),
    "qwen3_moe": (_GENERATION, _DECODER | _EXPERTS | {"num_experts": 4, "head_dim": 8}),
    "deepseek_v2": (_GENERATION, _LATENT),
    "deepseek_v3": (_GENERATION, _LATENT),
    "gpt_oss": (
        _GENERATION,
        _DECODER | {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8},
    ),
    "olmoe": (_GENERATION, _DECODER | {"num_experts": 4, "num_experts_per_tok": 2}),
    "granitemoe": (_GENERATION, _DECODER | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "jamba": (
        _GENERATION,
        _DECODER
        | {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "mamba_d_state": 8,
            "mamba_dt_rank": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "use_mamba_kernels": False,
        },
    ),
    "mamba2": (
        _GENERATION,
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_heads": 4,
            "head_dim": 16,
            "state_size": 8,
            "n_groups": 1,
        },
    ),
    "bloom": (_GENERATION, {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "gpt2": (_GENERATION, _GPT),
    "gptj": (_GENERATION, _GPT | {"rotary_dim": 4}),
    "codegen": (_GENERATION, _GPT | {"rotary_dim": 4}),
    "opt": (_GENERATION, _TEXT | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "falcon": (_GENERATION, _TEXT),
    "phi": (_GENERATION, _DECODER),
    "phi3": (_GENERATION, _DECODER | {"pad_token_id": 0}),
    "glm4": (_GENERATION, _DECODER | {"head_dim": 8, "pad_token_id": 0}),
    "gemma3_text": (_GENERATION, _DECODER | {"head_dim": 8}),
    "cohere2": (_GENERATION, _DECODER),
    "starcoder2": (_GENERATION, _DECODER),
    "stablelm": (_GENERATION, _DECODER),
    "lfm2": (_GENERATION, _DECODER | {"layer_types": ["conv", "full_attention"]}),
    "bert": (_FEATURES, _TEXT),
    "roberta": (_TEXTS, _TEXT),
    "xlm-roberta": (_FEATURES, _TEXT),
    "electra": (_FEATURES, _TEXT | {"embedding_size": 32}),
    "distilbert": (
        _TEXTS,
        {
            "vocab_size": 64,
            "dim": 32,
            "hidden_dim": 48,
            "n_layers": 2,
            "n_heads": 4,
            "max_position_embeddings": 32,
        },
    ),
    "mpnet": (_FEATURES, _TEXT),
    "albert": (_FEATURES, _TEXT | {"embedding_size": 16}),
    "deberta-v2": (_TEXTS, _TEXT),
    "modernbert": (
        _TEXTS,
        _TEXT
        | {
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
        },
    ),
    "layoutlmv3": (
        _TEXTS,
        _TEXT
        | {
            "coordinate_size": 4,
            "shape_size": 8,
            "input_size": 16,
            "patch_size": 8,
            "max_2d_position_embeddings": 16,
        },
    ),
    "vit": (_IMAGES, _VISION),
    "deit": (_IMAGES, _VISION | {"architectures": ["DeiTForImageClassification"]}),
    "dinov2": (_IMAGES, _VISION),
    "swin": (
        _IMAGES,
        {
            "image_size": 16,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 2],
            "window_size": 2,
        },
    ),
    "segformer": (
        _IMAGES,
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [16, 32],
            "patch_sizes": [3, 3],
            "strides": [2, 2],
            "num_attention_heads": [2, 4],
            "mlp_ratios": [2, 2],
        },
    ),
    "convnext": (_IMAGES, {"num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]}),
    "resnet": (_IMAGES, {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}),
    "mobilevit": (
        _IMAGES,
        {
            "image_size": 32,
            "hidden_sizes": [16, 16, 16],
            "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 32],
        },
    ),
    "mobilenet_v2": (_IMAGES, {"image_size": 32, "depth_multiplier": 0.25}),
    "poolformer": (_IMAGES, {"hidden_sizes": [8, 8, 8, 16], "depths": [1, 1, 1, 1]}),
    "yolos": (_FEATURES, _VISION | {"image_size": [16, 16], "num_detection_tokens": 4}),
    "detr": (
        _FEATURES,
        {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "num_queries": 4,
            "backbone_config": _BACKBONE,
        },
    ),
    "siglip": (_FEATURES, {"text_config": _TEXT, "vision_config": _VISION}),
    "clip": (_FEATURES, {"text_config": _TEXT, "vision_config": _VISION, "projection_dim": 16}),
    "wav2vec2": (_FEATURES, _SOUND),
    "hubert": (_FEATURES, _SOUND),
}
