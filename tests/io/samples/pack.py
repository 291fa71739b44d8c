#!/usr/bin/env python3
"""pack.py DIRECTORY > checkpoint_vN.txt -- prints a checkpoint as text: for each file, its name and size, and its content in zlib and base64.

Read by tests/io/stored_sample.hpp. A sample is made once, by the version that it is a sample of, and never again.
"""
import base64
import pathlib
import sys
import textwrap
import zlib

for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    content = file.read_bytes()
    print(f"file {file.name} {len(content)}")
    print("\n".join(textwrap.wrap(base64.b64encode(zlib.compress(content, 9)).decode(), 118)))
