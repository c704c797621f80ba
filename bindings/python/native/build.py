# SPDX-License-Identifier: Apache-2.0
"""Make the C source of libannal._native from the installed headers of Annal.

    build.py OUT.c INCLUDE_DIR...

cffi gets every declaration of <annal/annal.h> and of the headers that it includes, without comments and
without what only a C compiler needs. Nothing is copied by hand, so nothing can differ.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent

# What stands before or after a declaration, for C compilers only.
ATTRIBUTES = re.compile(r"\bANNAL_(?:API|MUST_CHECK)\b|\bANNAL_PRINTF\([^)]*\)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
CONSTANT = re.compile(r"#\s*define\s+(ANNAL_[A-Z0-9_]+)\s+(.+)")
INCLUDE = re.compile(r"#\s*include\s+<(annal/[a-z0-9_/.]+)>")


def headers(roots: list[Path], name: str = "annal/annal.h") -> list[Path]:
    """The header `name` and those that it includes, each once, in the order in which C sees them."""
    seen: dict[str, Path] = {}

    def visit(name: str) -> None:
        if name in seen:
            return
        path = next(root / name for root in roots if (root / name).exists())
        seen[name] = path
        for included in INCLUDE.findall(path.read_text()):
            visit(included)
        seen[name] = seen.pop(name)  # after those that it includes

    visit(name)
    return list(seen.values())


def number(text: str, known: dict[str, int]) -> int | None:
    """The value of a constant expression of integers; None if it is something else."""
    text = re.sub(r"U?INT64_C\((\w+)\)", r"\1", text)
    text = re.sub(r"\b(\d+|0[xX][0-9a-fA-F]+)[uUlL]+\b", r"\1", text)
    if not re.fullmatch(r"[\w\s()+*<|-]+", text):
        return None
    try:
        value = eval(text, {"__builtins__": {}}, dict(known))  # noqa: S307 - checked above
    except (NameError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, int) else None


def declarations(paths: list[Path]) -> str:
    """The input of cffi's cdef(): the declarations of these headers, and their integer constants."""
    known: dict[str, int] = {"UINT32_MAX": 2**32 - 1, "INT64_MIN": -(2**63)}
    out: list[str] = []
    for path in paths:
        text = COMMENT.sub(" ", path.read_text()).replace("\\\n", " ")
        text = re.sub(r"#\s*ifdef __cplusplus.*?#\s*endif", "", text, flags=re.DOTALL)
        for line in text.splitlines():
            if not line.lstrip().startswith("#"):
                out.append(ATTRIBUTES.sub("", line).rstrip())
                continue
            constant = CONSTANT.match(line.strip())
            value = number(constant[2], known) if constant else None
            if constant and value is not None:
                known[constant[1]] = value
                out.append(f"#define {constant[1]} {value}")
    return re.sub(r"\n{2,}", "\n", "\n".join(out))


def functions(cdef: str) -> list[str]:
    """The names of all functions that are declared."""
    return sorted(set(re.findall(r"\b(annal_[a-z0-9_]+)\s*\((?!\*)", cdef)))


def main() -> None:
    from cffi import FFI  # type: ignore[import-untyped]

    out, *roots = sys.argv[1:]
    ffi = FFI()
    ffi.cdef(declarations([*headers([Path(root) for root in roots]), HERE / "native.h"]))
    ffi.cdef((HERE / "callbacks.cdef").read_text())
    ffi.set_source(
        "libannal._native",
        '#include "native.h"\n',
        py_limited_api=True,
    )
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main()
