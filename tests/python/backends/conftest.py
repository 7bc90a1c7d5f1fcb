"""Exports that the tests of all backends share."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_programs


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backends")


@pytest.fixture(scope="session")
def llama(workspace: Path) -> tiny_programs.Exported:
    """Generates text; four positions a call."""
    return tiny_programs.export(workspace / "llama", tiny_programs.LLAMA, tiny_programs.FIXED)


@pytest.fixture(scope="session")
def dynamic_llama(workspace: Path) -> tiny_programs.Exported:
    """The same with one to four positions a call."""
    return tiny_programs.export(
        workspace / "dynamic_llama", tiny_programs.LLAMA, tiny_programs.GENERATION
    )


@pytest.fixture(scope="session")
def resnet(workspace: Path) -> tiny_programs.Exported:
    """Classifies images of 32 by 32 pixels."""
    return tiny_programs.export(workspace / "resnet", tiny_programs.RESNET, tiny_programs.IMAGES)
