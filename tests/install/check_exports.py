#!/usr/bin/env python3
"""check_exports.py NM LIBRARY -- fails if the library exports internal symbols, or no symbols.

Only the namespace that declares a symbol counts. Its parameters may have internal types, since programs pass pointers
to them.
"""
import re
import subprocess
import sys

# Namespaces of capstan:: that the public headers declare.
PUBLIC = {"data", "detail", "embedding", "initializers", "metrics", "optimizers"}
# Functions of internal namespaces that a public header calls.
ALSO = {"capstan::mpi::share"}
SPECIAL = re.compile(r"^(?:typeinfo for|typeinfo name for|vtable for|VTT for|construction vtable for|guard variable for|"
                     r"(?:non-virtual|virtual) thunk to|reference temporary #\d+ for) ")  # fmt: skip


def without_brackets(text, opening, closing):
    """Returns the text that is not inside brackets."""
    depth, kept = 0, []
    for i, letter in enumerate(text):
        if letter == opening:
            depth += 1
        elif letter == closing and text[i - 1] != "-":
            depth -= 1
        elif depth == 0:
            kept.append(letter)
    return "".join(kept)


def name_of(symbol):
    """Returns capstan::data::batches_of for `capstan::data::batches_of(std::vector<...> const&)`."""
    text = SPECIAL.sub("", symbol).replace("(anonymous namespace)", "anonymous").replace("operator()", "operator")
    text = re.sub(r"operator(<=>|<<|>>|<=|>=|<|>|->)", "operator", text)
    text = re.sub(r"\[abi:\w+\]", "", without_brackets(text, "<", ">"))
    head = text.split("(")[0]
    return head if "operator " in head else head.split(" ")[-1]


def complaint(symbol):
    """Returns the reason why the library must not export the symbol, or None."""
    parts = name_of(symbol).split("::")
    if parts[0] != "capstan":
        return "is not a name of Capstan"
    namespace = parts[1] if len(parts) > 2 and re.match(r"[a-z]", parts[1]) else None
    if namespace is None or namespace in PUBLIC or "::".join(parts) in ALSO:
        return None
    return f"is internal: namespace capstan::{namespace}"


def main(nm, library):
    listed = subprocess.run([nm, "--dynamic", "--defined-only", "--demangle", library], capture_output=True, text=True, check=True)
    symbols = sorted({line.split(" ", 2)[2] for line in listed.stdout.splitlines() if line.count(" ") >= 2})
    complaints = [f"{symbol}: {why}" for symbol in symbols if (why := complaint(symbol))]
    if not symbols:
        complaints.append(f"{library} exports nothing")
    print("\n".join(complaints) or f"{library} exports {len(symbols)} names, all in the public API")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
