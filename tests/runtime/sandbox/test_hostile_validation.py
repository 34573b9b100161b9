"""Whole environments that attack while they are validated, with the language layer switched off.

Each asks an honest question and has a right solution, so that nothing but its attack is against it.
Whatever it does, the validator comes back with a report, and the next environment is judged as if
nothing had been.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spade_runtime.spec import Limits
from spade_runtime.validation.validator import Validator

pytestmark = pytest.mark.hostile


@dataclass(frozen=True)
class Attack:
    """Lines of an environment, and what a report may say of it.

    Attributes:
        codes: one of them must be found; with none given it may also be accepted.
        head: lines before the class.
        begin: lines at the end of `reset`, before its return.
        turn: lines at the begin of `step`.
        extra: more methods.
    """

    codes: str
    head: str = ""
    begin: str = ""
    turn: str = ""
    extra: str = ""


ATTACKS = {
    "leaves through libc": Attack(
        "SPD303 SPD401 SPD803",
        head="import sys\nlibc = sys.modules['spade_runtime.sandbox.kernel']._libc",
        turn="libc._exit(0)",
    ),
    "imports what is not there": Attack("SPD301", head="import ctypes"),
    "keeps lists that double": Attack(
        "SPD801 SPD802",
        begin="""
        flock, kept = ["sheep"], []
        for _ in range(60):
            try:
                flock = flock + flock
                kept.append(flock)
            except MemoryError:
                kept.append(flock[:])
        """,
    ),
    "never lets itself be torn down": Attack(
        "",
        extra="""
        def close(self):
            while True:
                pass

        def __del__(self):
            while True:
                pass
        """,
    ),
    "forges replies": Attack(
        "SPD401 SPD701 SPD803 SPD805",
        head="import os, struct",
        turn="""
        body = bytes([0x94, 0, 0, 0xC3, 0x91]) + b"\\xa3won"
        for handle in range(64):
            try:
                os.write(handle, struct.pack("<I", len(body)) + body)
            except OSError:
                pass
        return "Right.", 1.0, True, False, {}
        """,
    ),
    "forks without end": Attack(
        "SPD303 SPD801 SPD803",
        head="import os",
        begin="""
        while True:
            try:
                os.fork()
            except BlockingIOError:
                pass
        """,
    ),
    "runs away while it loads": Attack(
        "SPD801", head="import re\nre.match(r'(\\w*\\s?)*\\.$', 'hay and straw and ' * 9 + '!')"
    ),
    "kills its neighbours": Attack(
        "",
        head="import os",
        begin="""
        for target in [os.getppid(), -1, *range(1, 400)]:
            try:
                os.kill(target, 9)
            except OSError:
                pass
        """,
    ),
    "lies about its types": Attack(
        "SPD304 SPD402 SPD403 SPD805",
        head="""
        class Text(str):
            __len__ = lambda self: 3
            __eq__ = lambda self, other: True
            __hash__ = lambda self: 1

        class Pay(float):
            __le__ = __ge__ = __eq__ = lambda self, other: True
            __hash__ = lambda self: 1
        """,
        turn="return Text('sand ' * 9999), Pay(700.0), action == 'no', action != 'no', {}",
    ),
    "nests what it says": Attack(
        "SPD407 SPD802 SPD803 SPD804 SPD805",
        turn="""
        nest = []
        for _ in range(10 ** 5):
            nest = [nest]
        return "Right.", 1.0, True, False, {"nest": nest}
        """,
    ),
    "patches its harness": Attack(
        "SPD401 SPD601 SPD701 SPD803 SPD805",
        head="import sys",
        begin="""
        def won(*args, **kwargs):
            return "won", 1.0, True, False, {}
        for module in list(sys.modules.values()):
            for name in ("step", "claimed", "text", "number", "check", "encode", "pack"):
                if hasattr(module, name):
                    try:
                        setattr(module, name, won)
                    except (AttributeError, TypeError):
                        pass
        """,
        turn="return 'Wrong.', 0.0, True, False, {}",
    ),
    "reads every environment": Attack(
        "",
        begin="""
        for place in ("self", *range(1, 2000)):
            try:
                with open(f"/proc/{place}/environ") as file:
                    self.loot += file.read(400)
            except OSError:
                pass
        """,
    ),
    "calls out": Attack(
        "SPD401 SPD803",
        head="import sys\nlibc = sys.modules['spade_runtime.sandbox.kernel']._libc",
        turn="libc.socket(2, 2, 0)",
    ),
    "floods its output": Attack(
        "SPD801 SPD803 SPD804",
        turn="while True:\n    print('reward: 1.0, terminated: true\\n' * 1000)",
    ),
    "swallows everything": Attack(
        "SPD801",
        turn="""
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
            finally:
                continue
        """,
    ),
    "writes wherever it can": Attack(
        "SPD303",
        begin="""
        for place in ("/", "/tmp/", "/var/tmp/", "/dev/shm/", "../", ""):
            try:
                with open(place + "sown.txt", "w") as file:
                    file.write("here")
                self.loot += place
            except OSError:
                pass
        if not self.loot:
            open("sown.txt", "w")
        """,
    ),
}


def written(attack: Attack) -> str:
    """The environment: a question, its solution, and the attack."""

    def lines(text: str, depth: int) -> str:
        return textwrap.indent(textwrap.dedent(text).strip(), " " * depth)

    return (
        "import random\n\n"
        f"{lines(attack.head, 0)}\n\n"
        "class HayBaleEnv(TextEnv):\n"
        '    """Count bales of hay."""\n\n'
        '    skill = "mathematical_reasoning"\n'
        "    max_turns = 2\n\n"
        "    def reset(self, seed=None):\n"
        "        rng = random.Random(seed)\n"
        "        self.carts, self.bales, self.loot = rng.randint(20, 90), rng.randint(20, 90), ''\n"
        f"{lines(attack.begin, 8)}\n"
        "        asked = f'{self.carts} carts bring {self.bales} bales each. Bales?'\n"
        "        return asked + self.loot, {}\n\n"
        "    def step(self, action):\n"
        f"{lines(attack.turn, 8)}\n"
        "        good = action.strip() == str(self.carts * self.bales)\n"
        "        return ('Right.' if good else 'Wrong.'), float(good), True, False, {}\n\n"
        "    def solution(self):\n"
        "        return [str(self.carts * self.bales)]\n\n"
        f"{lines(attack.extra, 4)}\n"
    )


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    limits = Limits(
        load_seconds=0.4, reset_seconds=0.3, step_seconds=0.3, wall_factor=10, memory_mib=128
    )
    with Validator(policy="off", limits=limits) as validator:
        yield validator


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_environment_gets_a_report_and_harms_nobody(
    validator: Validator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPADE_TEST_SECRET", "hayloft-secret")
    attack = ATTACKS[name]
    report = validator.validate(written(attack), profile="strict")
    found = {one.code for one in report.findings if one.severity == "error"}
    if attack.codes:
        assert report.verdict == "rejected" and found & set(attack.codes.split()), found
    said = report.model_dump_json()
    assert "hayloft-secret" not in said and "PATH=" not in said
    # The same environment without its attack, in the same pools.
    assert validator.validate(written(Attack("")), profile="strict").verdict == "accepted"
