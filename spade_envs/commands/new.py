"""`spade new`: a scaffold that passes the strict profile, to be changed into something better."""

from __future__ import annotations

import argparse
import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from spade_envs.commands.outputs import telling_of
from spade_runtime.cli import Command
from spade_runtime.errors import SpadeError, UsageError


def scaffold(name: str, kind: str, title: str | None = None) -> str:
    """The source of a fresh environment.

    Args:
        name: its class name without `Env`.
        kind: `game` or `tool_use`.
        title: first line of its docstring.
    """
    template = files("spade_envs.scaffolds").joinpath(f"{kind}.py.txt").read_text("utf-8")
    fallback = {"game": "Guess a number", "tool_use": "Move hotel guests between rooms"}[kind]
    return Template(template).substitute(name=name, title=(title or fallback).rstrip(". "))


def class_stem(name: str) -> str:
    """A class name without `Env` from what a person typed.

    Raises:
        UsageError: it can't be made into one.

    >>> class_stem("crate_shuffle"), class_stem("CrateShuffleEnv"), class_stem("tide-table")
    ('CrateShuffle', 'CrateShuffle', 'TideTable')
    """
    parts = re.split(r"[\s_-]+", name.strip().removesuffix(".py"))
    stem = "".join(part[:1].upper() + part[1:] for part in parts).removesuffix("Env")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", stem) or keyword.iskeyword(stem):
        raise UsageError(
            f"{name!r} makes no class name; use letters and digits, for example crate_shuffle"
        )
    return stem


def file_name(stem: str) -> str:
    """The file for a class.

    >>> file_name("CrateShuffle")
    'crate_shuffle.py'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower() + ".py"


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="name of the environment, for example crate_shuffle")
    parser.add_argument(
        "--kind", choices=("game", "tool_use"), default="game", help="default: %(default)s"
    )
    parser.add_argument("--title", help="first line of its docstring")
    parser.add_argument("--to", type=Path, default=Path(), help="directory, default: this one")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")


def _run(arguments: argparse.Namespace) -> int:
    stem = class_stem(arguments.name)
    title = arguments.title or ""
    if not title.isprintable() or re.search(r'[\\{}]|"""', title):
        raise UsageError(
            "a title is one line of printable text without backslashes, braces and triple quotes"
        )
    path = arguments.to / file_name(stem)
    if path.exists() and not arguments.force:
        raise UsageError(f"{path} is there already; take another name, or --force to replace it")
    text = scaffold(stem, arguments.kind, arguments.title)
    # Aside first: a full disk leaves neither half a file nor a hole in the one that was there.
    aside = path.with_name(f".{path.name}.partial")
    try:
        with telling_of(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                aside.write_text(text, encoding="utf-8")
                aside.replace(path)
            finally:
                aside.unlink(missing_ok=True)
    except OSError as error:
        raise SpadeError(
            f"can't write {path}: {error.strerror}; name another folder with --to"
        ) from error
    print(path)
    print(f"Check it:  spade validate {path} --profile strict")
    print(f"Play it:   spade play {path}")
    return 0


command = Command(
    name="new",
    summary="write a scaffold that passes the strict profile",
    configure=_configure,
    run=_run,
)
