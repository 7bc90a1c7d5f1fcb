"""Models of random weights: every architecture that tests need, lowered in seconds."""

load(
    "//executorch:defs.bzl",
    "executorch_export",
    "executorch_lower",
    "executorch_parity_test",
    "hf_model",
    "tiny_checkpoint",
)

visibility(["//models"])

_DEVICES = {
    "portable": Label("//executorch/devices:portable"),
    "xnnpack": Label("//executorch/devices:host_x86_64_xnnpack"),
}

def tiny_model(
        name,
        architecture,
        task = "text-generation",
        shards = 1,
        max_cache_len = 64,
        image_size = 0):
    """Declares a checkpoint, a model, its export, a program for each device and its parity test.

    The targets are NAME_checkpoint, NAME, NAME_export, and for the devices portable and xnnpack
    NAME_DEVICE and NAME_DEVICE_test.

    Args:
        name: name of the model.
        architecture: folder below `tiny` with its configuration, and its generation configuration
            unless the checkpoint is to have none.
        task: what the model is for.
        shards: number of safetensors files.
        max_cache_len: positions of the static cache, for a model that generates text.
        image_size: height and width of images, for a model of images.
    """
    generation_configs = native.glob(
        ["tiny/{}/generation_config.json".format(architecture)],
        allow_empty = True,
    )
    tiny_checkpoint(
        name = name + "_checkpoint",
        config = "tiny/{}/config.json".format(architecture),
        generation_config = generation_configs[0] if generation_configs else None,
        shards = shards,
        task = task,
    )
    hf_model(
        name = name,
        srcs = [":{}_checkpoint".format(name)],
        task = task,
    )
    executorch_export(
        name = name + "_export",
        image_size = image_size,
        max_cache_len = max_cache_len,
        memory = "2g",
        model = ":" + name,
    )
    for device, label in _DEVICES.items():
        executorch_lower(
            name = "{}_{}".format(name, device),
            device = label,
            exported = ":{}_export".format(name),
            memory = "2g",
        )
        executorch_parity_test(
            name = "{}_{}_test".format(name, device),
            size = "small",
            program = ":{}_{}".format(name, device),
        )
