#!/usr/bin/env python3
"""Counts the lines of Rust code by crate: no blanks, no comments, no tests.

    tools/lines.py [FOLDER]

counts FOLDER/crates/*/src (default: the repository that this file is in). It skips blank lines, comments,
documentation, items under `#[cfg(test)]` (inline modules, functions, imports) and the files of such modules.
"""

import re
import sys
from pathlib import Path

# One token at a time; tokens that may contain a brace or a slash come first.
TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))
  | (?P<text>b?"(?:\\.|[^"\\])*")
  | (?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^\\'\n])')
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
TEST = re.compile(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]")
MODULE = re.compile(r"(?:\s*#\[[^\]]*\])*\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")


def without_comments(source: str) -> str:
    """The source with comments taken out and the contents of strings replaced, line by line as it was."""
    out, position = [], 0
    while position < len(source):
        token = TOKEN.match(source, position)
        position = token.end()
        if token.lastgroup == "block" or token["block"]:
            depth = 1
            while depth and position < len(source):
                nested = re.compile(r"/\*|\*/|\n").search(source, position)
                if nested is None:
                    position = len(source)
                    break
                depth += {"/*": 1, "*/": -1, "\n": 0}[nested[0]]
                out.append("\n" if nested[0] == "\n" else "")
                position = nested.end()
        elif token["comment"]:
            continue
        elif token["raw"] or token["text"] or token["char"]:
            # All lines of a string count as code.
            out.append("\n".join('"s"' for _ in token[0].split("\n")))
        else:
            out.append(token[0])
    return "".join(out)


def end_of_item(code: str, start: int) -> int:
    """The end of the item that begins at `start`: its closing brace or semicolon."""
    depth = 0
    for position in range(start, len(code)):
        letter = code[position]
        if letter in "{([":
            depth += 1
        elif letter in "})]":
            depth -= 1
            if depth == 0 and letter == "}":
                return position + 1
        elif letter in ";," and depth == 0:
            return position + 1
    return len(code)


def read(path: Path) -> tuple[int, set[Path]]:
    """The number of a file's lines of code, and the files that its test modules are in."""
    code = without_comments(path.read_text())
    tests = set()
    while found := TEST.search(code):
        if module := MODULE.match(code, found.end()):
            folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
            tests |= {folder / f"{module[1]}.rs", folder / module[1]}
        code = code[: found.start()] + code[end_of_item(code, found.end()) :]
    return sum(1 for line in code.split("\n") if line.strip()), tests


def lines_of(crate: Path) -> int:
    """The lines of code of a crate."""
    counts, tests = {}, set()
    for path in crate.glob("src/**/*.rs"):
        counts[path], found = read(path)
        tests |= found
    return sum(count for path, count in counts.items() if not tests & {path, *path.parents})


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    counts = {crate.name: lines_of(crate) for crate in sorted(root.glob("crates/*")) if crate.is_dir()}
    if not counts:
        sys.exit(f"no crates in {root}")
    for name, count in sorted(counts.items(), key=lambda row: -row[1]):
        print(f"{name:16} {count:7,}")
    print(f"{'in all':16} {sum(counts.values()):7,}")


if __name__ == "__main__":
    main()
