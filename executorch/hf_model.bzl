"""`hf_model`: a checkpoint of the Hugging Face hub, checked and described.

```starlark
load("@rules_executorch//executorch:defs.bzl", "hf_model")

hf_model(
    name = "smollm2",
    srcs = glob(["smollm2/*.json", "smollm2/*.safetensors"]),
    task = "text-generation",
)
```

The target's files are the checkpoint's own, not copies. Building it builds nothing; building
something that uses it first checks the checkpoint: every shard that the index wants is there, the
headers are sound, no code comes along, the architecture is known, and every tensor that the output
depends on is there. Pickles are never opened. Weights may be safetensors, also sharded, or one GGUF
file; from a GGUF, the configuration and the tokenizer are rebuilt.

Licences: `license` is the licence in the hub's words. It is compared with what the model card or the
GGUF header states, and with `package_url` it becomes metadata of `rules_license` on the target
(`NAME.license`, `NAME.package_info`), which licence checks of an app gather.
`--@rules_executorch//executorch/settings:denied_licenses=cc-by-nc-*,unknown` fails the build of
whatever uses a model with such a licence, also where the target does not declare it.

Output group `description`: `model.json`, what is known about the model, and `config.json`, the
configuration reduced to what shapes the graph (and for a GGUF the rebuilt tokenizer).

Provider: `HfModelInfo`.
"""

load("//executorch/private/actions:shared.bzl", "shared_attributes")
load("//executorch/private/rules:hf_model.bzl", "executorch_hf_model", "executorch_hf_model_shared")
load("//executorch/private/rules:license_metadata.bzl", "license_metadata")

def hf_model(name, srcs, task = "", license = None, package_url = None, **kwargs):
    """Declares a model.

    Args:
        name: name of the target.
        srcs: files of the checkpoint, or targets that have them: `config.json`, the weights as
            `*.safetensors` (with their index, if sharded) or one `*.gguf`, and what the checkpoint
            has of tokenizer, chat template, generation config, README and licence. A whole
            folder of the hub works: what is not needed, such as weights in other formats and folders
            like `onnx/`, is passed over and listed in `model.json`.
        task: what the model does, in the hub's words: `text-generation`, `audio-classification`,
            `automatic-speech-recognition` (by CTC), `depth-estimation`, `feature-extraction`,
            `fill-mask`, `image-classification`, `image-feature-extraction`, `image-segmentation`
            (by class), `object-detection`, `question-answering`, `text-classification` or
            `token-classification`. By default what the class says that config.json names in
            `architectures`; then what depends on it, such as a missing `max_cache_len`, is
            checked with the checkpoint, and not when targets are analysed.
        license: the licence, in the hub's words, for example `apache-2.0`.
        package_url: `pkg:huggingface/OWNER/NAME@REVISION` of a checkpoint that is not from the
            module extension `huggingface`, whose files say where they come from.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    metadata = license_metadata(
        name,
        srcs = srcs,
        license = license,
        package_url = package_url,
        tags = kwargs.get("tags"),
        visibility = kwargs.get("visibility"),
    )
    if metadata:
        # The name that Bazel 7 and 8 both have for what is now `package_metadata`.
        kwargs["applicable_licenses"] = metadata + kwargs.get("applicable_licenses", [])
    shared = shared_attributes(name, kwargs)
    executorch_hf_model_shared(
        srcs = srcs,
        license = license,
        package_url = package_url,
        task = task,
        **shared
    )
    executorch_hf_model(name = name, srcs = srcs, shared = shared["name"], **kwargs)
