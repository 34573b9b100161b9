"""`spade`: one program whose commands live in the packages that they belong to.

Each command is a `Command` found through the entry-point group `spade.commands`. The table of
summaries below lets `spade --help` answer at once, without importing Gymnasium or torch.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from spade_runtime import __version__
from spade_runtime.errors import SpadeError, UsageError

GROUP = "spade.commands"

# Packages that an extra other than `train` brings.
EXTRAS = {"jinja2": "report", "sklearn": "report", "sentence_transformers": "report"}
OWN = ("spade_runtime", "spade_envs", "spade_train")

SECTIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "check",
        (
            ("doctor", "which isolation this machine gives, and what is missing"),
            ("validate", "say which environments are sound, and why the others are not"),
            ("explain", "what a finding means, with an example and the mend"),
        ),
    ),
    (
        "play",
        (
            ("new", "write a scaffold that passes the strict profile"),
            ("list", "the registered environments"),
            ("show", "one environment's card"),
            ("play", "play in the terminal, or watch a policy play"),
            ("run", "roll a model and print its results"),
            ("replay", "run recorded episodes again and find the first difference"),
            ("pool", "content-addressed pools: import, ls, export, verify, lock"),
        ),
    ),
    (
        "train",
        (
            ("train", "self-play: one model designs environments and learns in them"),
            ("resume", "go on with a run that was stopped"),
            ("design", "the designer alone: documents in, environments out"),
            ("tiny", "build the embedded policy from nothing"),
            ("report", "write a run as one HTML file"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the program.

    Attributes:
        name: the word on the command line.
        summary: one line for `spade --help`.
        configure: adds the command's arguments to its parser.
        run: does the work and returns the exit code.
        description: the longer text of `spade NAME --help`.
    """

    name: str
    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    description: str = ""


def add_isolation(parser: argparse.ArgumentParser) -> None:
    """Add the option that every command with a sandbox has."""
    parser.add_argument(
        "--isolation",
        choices=("strict", "best_effort", "none"),
        default="strict",
        help="strict (default) refuses to run where the machine can't isolate",
    )


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _overview(installed: dict[str, EntryPoint]) -> str:
    lines = [
        "usage: spade COMMAND [ARGUMENTS]   (spade COMMAND --help tells more)",
        "",
        "Environments written by language models, run safely, and learned from.",
    ]
    known: set[str] = set()
    for title, rows in SECTIONS:
        shown = [(name, text) for name, text in rows if name in installed]
        known.update(name for name, _ in rows)
        if shown:
            lines += ["", f"{title}:"]
            lines += [f"  {name:<10} {text}" for name, text in shown]
    others = sorted(set(installed) - known)
    if others:
        lines += ["", "others: " + " ".join(others)]
    lines += [
        "",
        "options: --version, --help; after a command --debug shows the traceback of an error.",
        "Start with: spade doctor",
    ]
    return "\n".join(lines)


def _absent(command: str, package: str) -> UsageError:
    """Return the error about a package of an extra that is not installed."""
    # A report reads a run's configuration as training does, and draws with its own extra.
    own = "train,report" if command == "report" else "train"
    extra = EXTRAS.get(package.partition(".")[0], own)
    return UsageError(
        f"`spade {command}` needs the package {package!r}, which the plain installation leaves "
        f"out; install its extra: pip install 'spade-envs[{extra}]', or in a checkout: "
        f"pip install '.[{extra}]'"
    )


def _load(name: str, installed: dict[str, EntryPoint]) -> Command:
    if name not in installed:
        near = get_close_matches(name, installed, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`spade --help` lists the commands"
        raise UsageError(f"there is no command {name!r}; {hint}")
    command = installed[name].load()
    if not isinstance(command, Command):
        raise UsageError(f"the entry point of {name!r} is no spade command: {command!r}")
    return command


def _parser(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"spade {command.name}",
        description=command.description or command.summary,
        formatter_class=_Folding,
    )
    command.configure(parser)
    _complete(parser)
    return parser


class _Folding(argparse.RawDescriptionHelpFormatter):
    """Leaves a description as it was written, and folds the paragraphs that are too wide."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_folded(part, width) for part in text.strip("\n").split("\n\n"))


def _folded(paragraph: str, width: int) -> str:
    lines = paragraph.splitlines()
    examples = any(line.startswith(" ") for line in lines)
    if examples or all(len(line) <= width for line in lines):
        return paragraph
    return textwrap.fill(" ".join(lines), width)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Give a parser, and those of its actions, what every one of them has."""
    # Unset where it is not given: an action's parser would write over what came before it.
    parser.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error",
    )
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        told = {choice.dest: choice.help for choice in action._choices_actions}
        for name, own in action.choices.items():
            own.formatter_class = _Folding
            if own.description is None and (text := told.get(name)):
                own.description = f"{text[0].upper()}{text[1:]}."
            _complete(own)


def _not_taken(left: Sequence[str], arguments: Sequence[str], *, keys: bool) -> str:
    """Return the message about words that a command does not take.

    Args:
        left: those words.
        arguments: all of the command line.
        keys: whether the command takes `key=value` words, which look like options to some.
    """
    text = f"unrecognized arguments: {' '.join(left)}"
    option = next((word for word in left if word.startswith("--")), None)
    if not keys or option is None:
        return text
    name, equals, value = option.removeprefix("--").partition("=")
    if not equals:
        after = list(arguments[arguments.index(option) + 1 :][:1])
        value = after[0] if after and not after[0].startswith("-") else "VALUE"
    return f"{text}; settings have no dashes: write {name.replace('-', '_')}={value}"


def _dispatch(arguments: Sequence[str]) -> int:
    installed = _installed()
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_overview(installed))
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"spade {__version__}")
        return 0
    try:
        command = _load(arguments[0], installed)
        parser = _parser(command)
        parsed, left = parser.parse_known_args(arguments[1:])
        if left:
            parser.error(_not_taken(left, arguments, keys=hasattr(parsed, "overrides")))
        return command.run(parsed)
    except ModuleNotFoundError as missing:
        # A module of our own that is not there is a bug, and shows itself as one.
        if missing.name is None or missing.name.partition(".")[0] in OWN:
            raise
        raise _absent(arguments[0], missing.name) from missing


def _silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush can't fail."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _stopped_like_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, by which other programs stop one, end a command as cleanly as Ctrl-C does."""
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Returns:
        The exit code: the command's own, 1 for a fault, 2 for a usage error, 3 where the machine
        can't isolate, 130 after Ctrl-C or SIGTERM.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        with _stopped_like_by_ctrl_c():
            code = _dispatch(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SpadeError as error:
        if debug:
            traceback.print_exc()
        print(f"spade: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("spade: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe left, which is no error of ours.
        _silence_stdout()
        return 1
    except OSError as error:
        if debug:
            traceback.print_exc()
        # A full disk fails again in the last flush.
        _silence_stdout()
        where = error.filename if error.filename is not None else "the output"
        print(
            f"spade: error: {where}: {error.strerror or error}; make room or give permission, "
            f"and try again (--debug shows where it happened)",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    # `python -m` runs this file a second time, beside the module that the commands import.
    from spade_runtime.cli import main as imported

    raise SystemExit(imported())
