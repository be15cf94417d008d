#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a file includes a room that is not to the left of its own (docs/architecture.md)."""

import pathlib
import re
import sys

ROOMS = ["base", "world", "sim", "policy", "rollout", "certify", "learn", "fuse", "federation",
         "run", "report", "dashboard", "cli"]
# Rooms that may see less than everything to their left.
ONLY = {"certify": {"base", "certify"}}
# Third-party headers that stay in their room, and out of headers (except fmt, and what -inl.h files
# share: hwy in several rooms, nlohmann in base/json-inl.h).
HOMES = {
    r"CLI/": {"cli"},
    r"toml\+\+/": {"run"},
    r"nlohmann/": {"base", "world", "policy", "certify", "run", "report", "dashboard"},
    r"Random123/": {"base"},
    r"cairo": {"report"},
    r"boost/": {"certify"},
    r"zlib": {"policy"},
    r"openssl/": {"base"},
    r"hwy/": {"base", "world", "sim", "policy", "learn"},
}
INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def problems(root):
    for path in sorted(root.glob("fedgen/*/*.*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        room = path.parent.name
        if room not in ROOMS:
            yield f"{path}: room {room} is not in the list of tools/check_layers.py"
            continue
        allowed = ONLY.get(room, set(ROOMS[: ROOMS.index(room) + 1]))
        for included in INCLUDE.findall(path.read_text()):
            if included.startswith("fedgen/"):
                other = included.split("/")[1]
                if other not in allowed:
                    yield f"{path}: includes {included}, but {room} may not see {other}"
                continue
            for pattern, homes in HOMES.items():
                if not re.match(pattern, included):
                    continue
                if room not in homes:
                    yield f"{path}: includes {included}, which belongs in {', '.join(sorted(homes))}"
                elif path.suffix == ".h" and not path.name.endswith(("-inl.h", "_testing.h")):
                    yield f"{path}: includes {included} in a header"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(problems(root))
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"layers: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
