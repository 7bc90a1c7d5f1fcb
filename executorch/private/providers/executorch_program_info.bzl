"""The provider of `executorch_lower`."""

visibility("//executorch/...")

DOC = """A program for the ExecuTorch runtime, lowered for one device."""

FIELDS = {
    "label": "Label of the `executorch_lower` target.",
    "program": "File: the program, `.pte`.",
    "data": "File or None: the program's weights, `.ptd`, when they are kept outside of the program.",
    "manifest": "File: JSON with what went in (hashes, versions, options) and what came out " +
                "(methods, operators, sizes).",
    "provenance": "File: how the program was made, an in-toto statement with SLSA provenance.",
    "report": "File: the manifest for people, Markdown.",
    "sbom": "File: CycloneDX ML-BOM of the program.",
    "device": "`ExecutorchDeviceInfo` of the device.",
    "exported": "`ExportedProgramInfo` of the graph that was lowered.",
    "model": "`HfModelInfo` of the model whose weights are in the program.",
}

ExecutorchProgramInfo = provider(doc = DOC, fields = FIELDS)
