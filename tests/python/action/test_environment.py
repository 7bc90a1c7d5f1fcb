"""An action sees none of the user's HOME, caches, proxies and tokens."""

import os
import subprocess
import sys

from rules_executorch.action import environment


def test_traps_are_out_of_sight(monkeypatch, tmp_path):
    traps = {
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path),
        "HF_TOKEN": "secret",
        "HUGGING_FACE_HUB_TOKEN": "secret",
        "https_proxy": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NETRC": str(tmp_path / "netrc"),
        "TORCH_LOGS": "all",
        "OMP_NUM_THREADS": "7",
    }
    for name, value in traps.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with environment.hermetic() as scratch:
        for name, value in traps.items():
            assert os.environ.get(name) != value, name
        assert os.environ["HOME"] == scratch
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        inside = os.path.join(scratch, "left-over")
        open(inside, "w").close()
    assert dict(os.environ) == before
    assert not os.path.exists(scratch)


def test_standard_output_is_standard_error_meanwhile():
    program = """
import os
from rules_executorch.action import environment

with environment.hermetic():
    os.system("echo noise")
    print("more noise")
print("result")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "result\n"
    assert ran.stderr == "noise\nmore noise\n"
