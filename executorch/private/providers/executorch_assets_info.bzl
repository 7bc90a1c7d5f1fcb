"""The provider of `executorch_assets`."""

visibility("//executorch/...")

DOC = """What an app carries of a model: a flat folder with the program that fits its platform."""

FIELDS = {
    "data": "File or None: `model.ptd`, weights that are not in the program.",
    "files": "depset of Files: everything in the folder.",
    "folder": "string: path of the folder below the folder of outputs, `PACKAGE/NAME`. A rule that " +
              "packs the files strips it from their paths.",
    "label": "Label of the `executorch_assets` target.",
    "manifest": "File: `manifest.json`, the program's manifest.",
    "model": "File: `model.pte`.",
    "program": "`ExecutorchProgramInfo` of the program that fits the platform of this configuration.",
    "tokenizer": "File or None: `tokenizer.json`, or the checkpoint's other tokenizer file.",
}

ExecutorchAssetsInfo = provider(doc = DOC, fields = FIELDS)
