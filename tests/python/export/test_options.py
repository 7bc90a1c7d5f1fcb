"""Options are typed, and a key that the schema does not know is refused."""

import json

import pytest

from rules_executorch.common.errors import UserError
from rules_executorch.export import options


def write(tmp_path, value):
    path = tmp_path / "options.json"
    path.write_text(json.dumps(value))
    return str(path)


def test_export_options(tmp_path):
    value = {
        "max_cache_len": 64,
        "quantization": {"scheme": "8da4w", "group_size": 16},
        "custom_ops": ["custom_sdpa"],
    }
    read = options.read_export_options(write(tmp_path, value))
    assert read.max_cache_len == 64
    assert read.quantization == options.Quantization(scheme="8da4w", group_size=16)
    assert read.custom_ops == ("custom_sdpa",)
    assert read.dtype == "float32"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"batch_size": 0}, "batch_size.*minimum of 1"),
        ({"max_cache_len": "8"}, "max_cache_len.*integer"),
        ({"max_cache_len": 8, "dtype": "float8"}, "dtype.*float8"),
        ({"max_cache_len": 8, "cache_len": 8}, "cache_len"),
        ([], "object"),
    ],
)
def test_bad_export_options(tmp_path, value, says):
    with pytest.raises(UserError, match=says):
        options.read_export_options(write(tmp_path, value))
