#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a file includes a room that is not to the left of its own (docs/architecture.md), if a
file or a room has grown too large, or if two types have one name: the linker would take a function
of one for the other's, without a word.

--graph prints, for each room, the rooms it includes and how many of its includes name each.
"""

import collections
import pathlib
import re
import sys

ROOMS = ["base", "world", "sim", "policy", "rollout", "certify", "learn", "fuse", "identity", "store",
         "federation", "operate", "run", "fleet", "report", "dashboard", "cli"]
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
    r"openssl/": {"base", "identity"},
    r"(grpc|grpcpp|google/protobuf)/": {"federation"},
    r"sqlite3": {"store"},
    r"(httplib|prometheus/)": {"operate"},
    r"hwy/": {"base", "world", "sim", "policy", "learn"},
}
# Code outside the rooms, which may see every room but cli: the program is nobody's library.
OUTSIDE = ["tests", "bench", "fuzz"]
MOST_LINES = 600  # of a file that is no test
MOST_STEMS = 15  # of a room; foo.h and foo.cc are one stem
MOST_VERBS = 25  # of cli, which has one file per verb
INCLUDE = re.compile(r'^\s*#include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
# A type of the namespace fedgen: not indented, and no mere declaration.
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)(?: final)?(?: : [^;]*)? \{", re.MULTILINE)
HIDDEN = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"_(test|testing|benchmark)$")


def sources(root, pattern):
    return [p for p in sorted(root.glob(pattern)) if p.suffix in {".h", ".cc"}]


def includes(path):
    return INCLUDE.findall(path.read_text())


def room_of(included):
    """The room of an include such as fedgen/sim/lidar.h; none for other headers."""
    parts = included.split("/")
    return parts[1] if parts[0] == "fedgen" and len(parts) > 2 else None


def layer_problems(path, room):
    allowed = ONLY.get(room, set(ROOMS[: ROOMS.index(room) + 1]))
    for included in includes(path):
        other = room_of(included)
        if other and other not in allowed:
            yield f"{path}: includes {included}, but {room} may not see {other}"
        for pattern, homes in HOMES.items():
            if not re.match(pattern, included):
                continue
            if room not in homes:
                yield f"{path}: includes {included}, which belongs in {', '.join(sorted(homes))}"
            elif path.suffix == ".h" and not path.name.endswith(("-inl.h", "_testing.h")):
                yield f"{path}: includes {included} in a header"


def problems(root):
    stems = collections.defaultdict(set)
    for path in sources(root, "fedgen/*/*.*"):
        room = path.parent.name
        if room not in ROOMS:
            yield f"{path}: room {room} is not in the list of tools/check_layers.py"
            continue
        yield from layer_problems(path, room)
        if TEST.search(path.stem):
            continue
        stems[room].add(path.stem)
        num_lines = len(path.read_text().splitlines())
        if num_lines > MOST_LINES:
            yield f"{path}: {num_lines} lines, must be at most {MOST_LINES}"
    for room, names in stems.items():
        most = MOST_VERBS if room == "cli" else MOST_STEMS
        if len(names) > most:
            yield f"fedgen/{room}: {len(names)} stems, must be at most {most}"
    for folder in OUTSIDE:
        for path in sources(root, f"{folder}/**/*.*"):
            if any(room_of(included) == "cli" for included in includes(path)):
                yield f"{path}: includes cli, which only cli may"


def types_of(path):
    """Types that the linker can take for those of another file: not those of a namespace {}."""
    return TYPE.findall(HIDDEN.sub("", path.read_text()))


def name_problems(root):
    homes = collections.defaultdict(list)
    for path in sources(root, "fedgen/*/*.*"):
        if not TEST.search(path.stem):
            for name in types_of(path):
                homes[name].append(str(path))
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"{name} is a type of each of {', '.join(paths)}"


def print_graph(root):
    edges = collections.Counter()
    for path in sources(root, "fedgen/*/*.*"):
        if TEST.search(path.stem):
            continue
        for other in filter(None, map(room_of, includes(path))):
            edges[path.parent.name, other] += 1
    for room in ROOMS:
        seen = [f"{o} {edges[room, o]}" for o in ROOMS if o != room and edges[room, o]]
        if (root / "fedgen" / room).exists():
            print(f"{room:<11}-> {', '.join(seen) or 'none'}")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    if "--graph" in sys.argv[1:]:
        print_graph(root)
        return 0
    found = [*problems(root), *name_problems(root)]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"layers and sizes: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
