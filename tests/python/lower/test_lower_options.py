"""Options of a lowering are typed, as those of an export are."""

import json

import pytest

from rules_executorch.common.errors import UserError
from rules_executorch.lower.options import LowerOptions, read_lower_options


def test_lower_options(tmp_path):
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"backend": "xnnpack"}))
    assert read_lower_options(str(path)) == LowerOptions(backend="xnnpack")
    path.write_text(json.dumps({"backend": "xnnpack", "threads": 1}))
    with pytest.raises(UserError, match="threads"):
        read_lower_options(str(path))
