"""Where the inputs came from that a backend's quantizer was calibrated with."""

from __future__ import annotations

import dataclasses
from typing import Literal

from rules_executorch.common.schema import Artifact, Positive, Sha256


@dataclasses.dataclass(frozen=True)
class FileSamples(Artifact):
    """Samples of a file."""

    samples: Positive
    sha256: Sha256
    kind: Literal["file"] = "file"


@dataclasses.dataclass(frozen=True)
class RandomSamples(Artifact):
    """Random samples, which is not enough to ship."""

    samples: Positive
    seed: int
    kind: Literal["random"] = "random"


CalibrationSource = FileSamples | RandomSamples
