"""docs/encryption.md holds: which keys encrypted what is in the store can be seen without any of them."""

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from countersign.agent_client.payloads import PayloadSettings, data_converter

PAGE = (Path(__file__).parents[2] / "docs" / "encryption.md").read_text()
[COMMAND] = re.findall(r"^LC_ALL=C grep .*$", PAGE, re.MULTILINE)


def perl_expressions() -> bool:
    """Whether grep is GNU's, with -P and -z."""
    grep = shutil.which("grep")
    if grep is None:
        return False
    return subprocess.run([grep, "-zP", "a"], input=b"a", capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not perl_expressions(), reason="needs GNU grep")
async def test_the_command_counts_the_blobs_of_each_key(tmp_path):
    """Before an old key is taken away, its blobs can be found; ids of every length, a line's end among the lengths."""
    keys, store = tmp_path / "keys", tmp_path / "store"
    store.mkdir()
    for name, blobs in {"2026-11": 2, "ten-letter": 1, "k" * 64: 1}.items():
        keys.write_text(f"{name} {base64.b64encode(os.urandom(32)).decode()}\n")
        converter = data_converter(PayloadSettings(storage=store.as_uri(), encryption_keys=keys))
        for number in range(blobs):
            await converter.encode([f"{number}" + os.urandom(300_000).hex()])
    command = COMMAND.replace("/var/lib/countersign", str(store))
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert sorted(line.split() for line in said.splitlines()) == [
        ["1", "k" * 64],
        ["1", "ten-letter"],
        ["2", "2026-11"],
    ]
