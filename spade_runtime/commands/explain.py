"""`spade explain CODE`: what a finding means, the smallest file that shows it, and the mend."""

from __future__ import annotations

import argparse
import textwrap

from spade_runtime.cli import Command
from spade_runtime.codes import CODES
from spade_runtime.validation.catalogue import Entry, entries, entry

_WIDTH = 88


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="*", help="finding codes such as SPD401; none lists them all")
    parser.add_argument("--markdown", action="store_true", help="the whole catalogue as a page")


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
    blocks += [textwrap.fill(note, _WIDTH) for note in _notes(item)]
    if item.neighbour:
        blocks.append("beside this one:\n\n" + textwrap.indent(item.neighbour.strip("\n"), "    "))
    blocks.append(textwrap.fill(f"The mend: {item.mend}", _WIDTH))
    return "\n\n".join(blocks)


def page() -> str:
    """The catalogue as one page of Markdown, as it stands in docs/findings.md."""
    lines = [
        "# Findings",
        "",
        "Written by `spade explain --markdown` from the code; a test fails where the two differ.",
        "",
        "| code | standard | strict | gate | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for item in entries().values():
        row = item.code
        lines.append(
            f"| [{row.code}](#{row.code.lower()}) | {row.standard} | {row.strict} | "
            f"{row.gate or 'any'} | {row.title} |"
        )
    lines += [
        "",
        "Two warnings share the code of their family whatever the profile: SPD305 where an",
        "observation holds text that reads as a chat template's control token, and SPD702 where",
        "feedback shows a traceback or the environment's own code.",
    ]
    for item in entries().values():
        lines += ["", f"## {item.code.code}", "", *_section(item)]
    return "\n".join(lines) + "\n"


def _section(item: Entry) -> list[str]:
    fence = "```"
    lines = [f"**{item.code.title}** ({_severity(item)})", "", item.meaning, ""]
    lines += [f"{fence}python", item.example.strip("\n"), fence]
    lines += [line for note in _notes(item) for line in ("", note)]
    return [*lines, "", f"The mend: {item.mend}"]


def _notes(item: Entry) -> list[str]:
    """What goes with an example besides its text."""
    notes = []
    if item.encoding != "utf-8":
        notes.append(f"saved in the encoding {item.encoding}.")
    if item.pad_to:
        notes.append(f"made {item.pad_to} bytes long by comments.")
    if item.policy == "off":
        notes.append("with --policy off: the static policy refuses it already.")
    if item.hint:
        notes.append(f"with the hint: {item.hint}")
    if item.judge is not None:
        notes.append(f"where the judge answers: {item.judge or '(nothing)'}")
    return notes


def _run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(page(), end="")
        return 0
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
