"""`executorch_model`: a model for several devices in one call.

```starlark
load("@rules_executorch//executorch:defs.bzl", "executorch_model")

executorch_model(
    name = "assistant",
    devices = [
        "@rules_executorch//executorch/devices:android_arm64_xnnpack",
        "@rules_executorch//executorch/devices:host_x86_64_xnnpack",
    ],
    max_cache_len = 2048,
    model = ":smollm2",
)
```

The model is exported once for each distinct graph, and lowered once for each distinct combination
of a graph, a backend, its options and packages: here once, since an XNNPACK program is the same for
a phone and a laptop. Of a model that generates text there are by default two graphs: one with the
attention and cache operators of ExecuTorch's LLM extension for devices whose runtime has them (see
`custom_ops` of `executorch_device`), and one with torch's own for the others. Nothing is exported
that no device needs. The targets are

| target | what it is |
|---|---|
| `assistant` | the folder for an app, an `executorch_assets` of all programs; tagged `manual` |
| `assistant_DEVICE` | the program for a device, as an `executorch_lower` has it, for each device |
| `assistant_export` | the exported program, as an `executorch_export` has it; tagged `manual` |
| `assistant_export_custom_ops` | the same with the LLM extension's operators, if `custom_ops` is not set; tagged `manual` |
| `assistant_test` | every program that this machine's runtime runs computes what eager computes; the others are read back |
| `assistant_host` | the first program that runs on this machine; tagged `manual` |
| `assistant_generate` | `bazel run`: answers a prompt with it; tagged `manual` |
| `assistant_benchmark` | `bazel run`: measures it; tagged `manual` |

`assistant_generate` and `assistant_benchmark` exist for models that generate text, which is those
with a `max_cache_len`, and take `input_ids`.
"""

load("//executorch:export.bzl", "executorch_export")
load("//executorch/private/actions:shared.bzl", "shared_attributes")
load("//executorch/private/rules:assets.bzl", "executorch_assets")
load("//executorch/private/rules:benchmark.bzl", "executorch_benchmark")
load("//executorch/private/rules:generate.bzl", "executorch_generate")
load("//executorch/private/rules:lowerings.bzl", "executorch_lowerings", "executorch_program")
load("//executorch/private/rules:model.bzl", "executorch_host_program", "executorch_model_test")
load("//executorch/private/tables:options.bzl", "CUSTOM_OPS")

def _device_name(device):
    _, colon, name = device.rpartition(":")
    return name if colon else device.rpartition("/")[2]

def _check(name, devices, export_attrs):
    names = {}
    for device, attrs in devices.items():
        short = _device_name(device)
        if short in names:
            fail("executorch_model {}: {} and {} have the same name, and the targets are named after devices. ".format(name, names[short], device) +
                 "Give one of them another name, for example with an alias().")
        names[short] = device
        for attr in attrs:
            if attr not in export_attrs:
                fail("executorch_model {}: devices[\"{}\"] has \"{}\", which is no option of an export. ".format(name, device, attr) +
                     "Write some of {}.".format(", ".join(export_attrs)))

def _devices_choose(attrs):
    """Whether the operators of attention and cache are for the devices to choose.

    A model without a cache has none, and the kernels of the LLM extension take one sequence.
    """
    return "custom_ops" not in attrs and attrs.get("max_cache_len", 0) != 0 and attrs.get("batch_size", 1) == 1

def executorch_model(
        name,
        model,
        devices,
        batch_size = None,
        custom_ops = None,
        dtype = None,
        dynamic_seq_len = None,
        image_size = None,
        input_form = None,
        logits = None,
        max_cache_len = None,
        max_seq_len = None,
        quantization = None,
        quantization_allow_skipped = None,
        quantization_embedding = None,
        quantization_group_size = None,
        tolerance = "",
        allow_noncanonical = False,
        allow_undelegated = False,
        allow_unquantized = False,
        calibration = None,
        external_data = False,
        memory = None,
        remote = "default",
        without_tokenizer = False,
        test_size = "large",
        tags = [],
        **kwargs):
    """Declares the targets of a model.

    Args:
        name: name of the folder for an app; the other targets' names begin with it.
        model: the `hf_model`.
        devices: list of the labels of `executorch_device` targets. Or a dict from such a label to a
            dict of what its export has different, for example `{"quantization": "8da4w"}`.
        batch_size: see `executorch_export`, as for all attributes up to `quantization_group_size`.
        custom_ops: here or for a device, takes the choice of operators away from the devices:
            `custom_ops = []` is for apps whose runtime lacks those of the LLM extension.
        dtype: see `executorch_export`.
        dynamic_seq_len: see `executorch_export`.
        image_size: see `executorch_export`.
        input_form: see `executorch_export`.
        logits: see `executorch_export`.
        max_cache_len: a model that generates text has to have it, see `executorch_export`.
        max_seq_len: see `executorch_export`.
        quantization: see `executorch_export`.
        quantization_allow_skipped: see `executorch_export`.
        quantization_embedding: see `executorch_export`.
        quantization_group_size: see `executorch_export`.
        tolerance: how far logits may be off in the test, see `executorch_parity_test`. A lossy
            program has to say it.
        allow_noncanonical: see `executorch_lower`.
        allow_undelegated: see `executorch_lower`.
        allow_unquantized: see `executorch_lower`.
        calibration: see `executorch_lower`; for the devices whose scheme is calibrated.
        external_data: see `executorch_lower`.
        memory: that exporting and lowering may take, for example `8g`; by default what each of
            the rules does.
        remote: what a remote cache and remote execution may do with exporting and lowering, see
            `executorch_export`.
        without_tokenizer: see `executorch_assets`.
        test_size: size of the test.
        tags: of all targets.
        **kwargs: attributes that every rule has, such as `visibility`.
    """
    if not devices:
        fail("executorch_model {}: devices is empty. Write for example ".format(name) +
             "devices = [\"@rules_executorch//executorch/devices:android_arm64_xnnpack\"].")
    if type(devices) == type([]):
        devices = {device: {} for device in devices}
    devices = {str(device): attrs for device, attrs in devices.items()}
    export_attrs = {
        "batch_size": batch_size,
        "custom_ops": custom_ops,
        "dtype": dtype,
        "dynamic_seq_len": dynamic_seq_len,
        "image_size": image_size,
        "input_form": input_form,
        "logits": logits,
        "max_cache_len": max_cache_len,
        "max_seq_len": max_seq_len,
        "quantization": quantization,
        "quantization_allow_skipped": quantization_allow_skipped,
        "quantization_embedding": quantization_embedding,
        "quantization_group_size": quantization_group_size,
    }
    _check(name, devices, export_attrs.keys())
    export_attrs = {key: value for key, value in export_attrs.items() if value != None}
    memory_attrs = {"memory": memory} if memory else {}

    # One export for devices with the same options, named after the first of them.
    graphs = {}
    for device, attrs in devices.items():
        merged = export_attrs | attrs
        key = str(sorted(merged.items()))
        graphs.setdefault(key, struct(attrs = merged, devices = []))
        graphs[key].devices.append(device)

    programs = []
    groups = []
    for graph in graphs.values():
        suffix = "_" + _device_name(graph.devices[0]) if groups else ""
        export, group = name + "_export" + suffix, name + "_lowerings" + suffix
        groups.append(group)
        exports = {export: graph.attrs}
        if _devices_choose(graph.attrs):
            exports[export + "_custom_ops"] = graph.attrs | {"custom_ops": CUSTOM_OPS}
        for target, attrs in exports.items():
            executorch_export(
                name = target,
                model = model,
                remote = remote,
                tags = tags + ["manual"],
                **(memory_attrs | attrs | kwargs)
            )
        executorch_lowerings(
            allow_noncanonical = allow_noncanonical,
            allow_undelegated = allow_undelegated,
            allow_unquantized = allow_unquantized,
            calibration = calibration,
            devices = graph.devices,
            exported = export,
            exported_custom_ops = list(exports)[1] if len(exports) > 1 else None,
            external_data = external_data,
            memory = memory or "auto",
            remote = remote,
            **(shared_attributes(group, kwargs | {"tags": tags}) | {"name": group})
        )
    for device in devices:
        group = [
            groups[number]
            for number, graph in enumerate(graphs.values())
            if device in graph.devices
        ][0]
        program = "{}_{}".format(name, _device_name(device))
        programs.append(program)
        executorch_program(
            name = program,
            device = device,
            lowerings = group,
            tags = tags,
            **kwargs
        )

    executorch_assets(
        name = name,
        programs = programs,
        tags = tags + ["manual"],
        without_tokenizer = without_tokenizer,
        **kwargs
    )
    executorch_model_test(
        name = name + "_test",
        lowerings = groups,
        size = test_size,
        tags = tags,
        tolerance = tolerance,
        **kwargs
    )
    executorch_host_program(
        name = name + "_host",
        programs = programs,
        tags = tags + ["manual"],
        **kwargs
    )
    generates = any([graph.attrs.get("max_cache_len", 0) for graph in graphs.values()])
    if generates and export_attrs.get("input_form", "input_ids") == "input_ids" and not without_tokenizer:
        for rule, kind in [(executorch_generate, "generate"), (executorch_benchmark, "benchmark")]:
            rule(
                name = "{}_{}".format(name, kind),
                program = name + "_host",
                tags = tags + ["manual"],
                **kwargs
            )
