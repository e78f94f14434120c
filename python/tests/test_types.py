"""What type checkers are told is what is there."""

import os
import pathlib
import subprocess
import sys

import pytest
import shingle


def checked(*arguments):
    folder = pathlib.Path(shingle.__file__).parent.parent
    environment = {**os.environ, "MYPYPATH": str(folder)}
    found = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=folder, env=environment)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_stubs_are_those_of_the_native_module(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.write_text("shingle._shingle.__all__\n")
    checked("mypy.stubtest", "shingle._shingle", "--ignore-disjoint-bases", "--allowlist", str(allowed))


def test_a_program_has_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import shingle\n"
        "with shingle.open('a') as db:\n"
        "    key: bytes = next(iter(db))\n"
        "    for found, value in db.scan(prefix=b'a'):\n"
        "        length: int = len(found) + len(value)\n"
        "    db.put(b'a', b'b', durability='synced')\n"
    )
    checked("mypy", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache"), str(program))
    program.write_text("import shingle\nvalue: int = shingle.open('a')[b'key']\n")
    with pytest.raises(AssertionError, match="expression has type .bytes."):
        checked("mypy", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache"), str(program))
