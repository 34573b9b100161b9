"""`spade explain CODE`: what a finding means, the smallest file that shows it, and the mend."""

from __future__ import annotations

import argparse
import textwrap

from spade_runtime.cli import Command
from spade_runtime.codes import CODES
from spade_runtime.validation.catalogue import Entry, entry

_WIDTH = 88


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="*", help="finding codes such as SPD401; none lists them all")


def _severity(item: Entry) -> str:
    standard, strict = item.code.standard, item.code.strict
    return standard if standard == strict else f"{standard}; {strict} in the strict profile"


def explanation(item: Entry) -> str:
    """The text that is printed for one code."""
    where = f"gate {item.code.gate}" if item.code.gate else "in any gate that runs the file"
    blocks = [
        f"{item.code.code}: {item.code.title}  [{_severity(item)}; {where}]",
        textwrap.fill(item.meaning, _WIDTH),
        "A file that shows it:\n\n" + textwrap.indent(item.example.strip("\n"), "    "),
    ]
    if item.encoding != "utf-8":
        blocks.append(f"saved in the encoding {item.encoding}.")
    if item.pad_to:
        blocks.append(f"made {item.pad_to} bytes long by comments.")
    if item.policy == "off":
        blocks.append("with --policy off: the static policy refuses it already.")
    if item.hint:
        blocks.append(
            textwrap.fill(f"with the hint: {item.hint}", _WIDTH, subsequent_indent="    ")
        )
    if item.neighbour:
        blocks.append("beside this one:\n\n" + textwrap.indent(item.neighbour.strip("\n"), "    "))
    if item.judge is not None:
        blocks.append(f"where the judge answers: {item.judge or '(nothing)'}")
    blocks.append(textwrap.fill(f"The mend: {item.mend}", _WIDTH))
    return "\n\n".join(blocks)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.code:
        for code, row in CODES.items():
            print(f"{code}  {row.standard:<7}  {row.title}")
        print("\n`spade explain CODE` tells what one means, with an example and the mend.")
        return 0
    print("\n\n".join(explanation(entry(code)) for code in arguments.code))
    return 0


command = Command(
    name="explain",
    summary="what a finding means, with an example and the mend",
    configure=_configure,
    run=_run,
)
