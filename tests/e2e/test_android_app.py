"""The assets of an Android app, and a real APK from which the program can be mapped."""

from __future__ import annotations

import mmap
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import debian
import pytest
from nested import Workspace

# Of new phones; a multiple of the 4 KiB of others.
PAGE = 16384


@pytest.fixture(scope="module")
def folder(app_workspace: Callable[[str], Workspace]) -> Path:
    """The folder of assets, built for a phone without an Android SDK."""
    workspace = app_workspace("android_app")
    # No SDK and no registry with rules_android here.
    workspace.edit("MODULE.bazel", 'include("//:android.MODULE.bazel")\n', "")
    shutil.rmtree(workspace.folder / "app")
    workspace.bazel("build", "//:assistant", "--platforms=//:phone")
    return workspace.folder / "bazel-bin" / "assistant"


@pytest.fixture(scope="module")
def apk(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An APK as a build of an app makes it: packed, aligned, signed."""
    tools = debian.programs("aapt", "android-framework-res", "apksigner", "zipalign")
    work = tmp_path_factory.mktemp("apk")
    assets = work / "assets"
    # Twice, since an entry that is aligned by chance would not be so a second time.
    for name in ("assistant", "second"):
        shutil.copytree(folder, assets / name)
    packed, aligned, signed = (work / f"{name}.apk" for name in ("packed", "aligned", "signed"))
    tools.run(
        "aapt", "package", "-f",
        "-M", Path(__file__).resolve().parents[2] / "e2e/android_app/app/AndroidManifest.xml",
        "-I", tools.root / "usr/share/android-framework-res/framework-res.apk",
        "-A", assets,
        "-0", "pte",
        "-0", "ptd",
        "-F", packed,
    )  # fmt: skip
    tools.run("zipalign", "-f", str(PAGE), packed, aligned)
    key = work / "key.p12"
    debian.output(
        [
            debian.java("keytool"), "-genkeypair", "-keystore", str(key), "-storetype", "PKCS12",
            "-storepass", "android", "-alias", "app", "-dname", "CN=Test", "-keyalg", "EC",
        ],
        None,
    )  # fmt: skip
    tools.run_jar(
        "apksigner*.jar", "sign", "--ks", key, "--ks-pass", "pass:android", "--out", signed, aligned
    )
    tools.run_jar("apksigner*.jar", "verify", signed)
    tools.run("zipalign", "-c", str(PAGE), signed)
    assert "package: name='com.example.assistant'" in tools.run("aapt", "dump", "badging", signed)
    return signed


def test_the_folder_is_for_the_phone(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        "model.pte",
        "tokenizer.json",
        "tokenizer_config.json",
    }


@pytest.mark.parametrize("name", ["assistant", "second"])
def test_the_program_can_be_mapped_from_the_signed_apk(apk: Path, folder: Path, name: str) -> None:
    with zipfile.ZipFile(apk) as archive:
        entry = archive.getinfo(f"assets/{name}/model.pte")
        assert entry.compress_type == zipfile.ZIP_STORED
        tokenizer = archive.getinfo(f"assets/{name}/tokenizer.json")
        assert tokenizer.compress_type == zipfile.ZIP_DEFLATED
    with apk.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(30)
        name_length, extra_length = struct.unpack_from("<HH", header, 26)
        offset = entry.header_offset + len(header) + name_length + extra_length
        assert offset % PAGE == 0
        with mmap.mmap(
            file.fileno(), entry.file_size, offset=offset, access=mmap.ACCESS_READ
        ) as mapped:
            assert mapped[4:6] == b"ET"
            assert mapped[:] == (folder / "model.pte").read_bytes()
