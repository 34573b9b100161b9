"""Environments that speak over the pipes themselves, or take over the harness that does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spade_runtime.errors import (
    EnvCrashed,
    EnvFault,
    EnvOutputTooLarge,
    EnvProtocolError,
    EnvTimeout,
    SpadeError,
)
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.columns import GROUP_MIN
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import Raised, RawStep

pytestmark = pytest.mark.hostile

# Finds the request that is being answered, as native code could, and writes raw bytes.
WIRE = """
import os, struct, sys, _thread
import msgspec

pack = msgspec.msgpack.encode

def request():
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("request"), "nonce"):
        frame = frame.f_back
    return frame.f_locals["request"]

def framed(body):
    return struct.pack("<I", len(body)) + body

def reply(nonce, items=None, first=0, last=True):
    return framed(pack([nonce, first, last, [WON] if items is None else items]))

def columns(said, rewards=None, ends=None, cuts=None, infos=None):
    return framed(pack([request().nonce, 0, True, said, rewards, ends, cuts, infos]))

def wait(seconds):
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire(timeout=seconds)

def silent():
    while True:
        wait(60)

WON = [4, "won", 1.0, True, False, b"{}", 0, ""]
send = lambda data: os.write(4, data)
"""

FORGED = {
    "garbage": "send(framed(os.urandom(64)))",
    "text": "send(b'\\x0e\\0\\0\\0{\"reward\": 1.0}')",
    "empty frame": "send(framed(b''))",
    "other nonce": "send(reply(request().nonce ^ 1))",
    "counter": "[send(reply(n)) for n in range(40)]",
    "not an array": "send(framed(pack({'reward': 1.0})))",
    "other phase": "send(reply(request().nonce, [[3, 'won', b'{}', None, None, 0, '']]))",
    "missing field": "send(reply(request().nonce, [[4, 'won', 1.0]]))",
    "extra field": "send(reply(request().nonce, [WON + [1]]))",
    "reward is text": "send(reply(request().nonce, [[4, '', '1.0', True, False, b'', 0, '']]))",
    "done is a number": "send(reply(request().nonce, [[4, 'won', 1.0, 1, False, b'{}', 0, '']]))",
    "info is a map": "send(reply(request().nonce, [[4, 'won', 1.0, True, False, {}, 0, '']]))",
    "text is no UTF-8": "send(reply(request().nonce).replace(b'won', b'w\\xff\\xfe'))",
    "columns of text": "send(columns(['won'], ['1.0']))",
    "columns of two lengths": "send(columns(['won'], [1.0, 1.0]))",
    "columns too many": "send(columns(['won'] * 5))",
    "columns of nothing": "send(columns([]))",
    "columns of truths": "send(columns(['won'], None, [1]))",
    "columns of maps": "send(columns(['won'], None, None, None, [{}]))",
    "columns twice": "send(columns(['won'], [1.0], [True]) * 2)",
    "columns and rows": "send(columns(['won']) + reply(request().nonce, first=1))",
    "no items": "send(reply(request().nonce, []))",
    "too many items": "send(reply(request().nonce, [WON] * 5))",
    "out of order": "send(reply(request().nonce, first=3))",
    "never last": "send(reply(request().nonce, last=False))",
    "trailing byte in the frame": "send(framed(pack([request().nonce, 0, True, [WON]]) + b'x'))",
    "twice at once": "send(reply(request().nonce) * 2)",
    "depth bomb": "send(framed(b'\\x91' * 60000))",
    "length lie inside": "send(framed(b'\\x94\\x01\\x00\\xc3\\xdd\\xff\\xff\\xff\\xff'))",
    "text length lie": "send(framed(b'\\xdb\\xff\\xff\\xff\\xffabc'))",
    "empty lists": "send(framed(b'\\xdc\\xff\\xff' + b'\\x90' * 65535))",
    "extension type": "send(framed(b'\\xc7\\x01\\x05x'))",
    "timestamp": "send(framed(b'\\xd6\\xff\\x00\\x00\\x00\\x01'))",
}


@pytest.mark.parametrize("code", FORGED.values(), ids=FORGED.keys())
def test_hostile_frame_breaks_the_protocol(
    play: Callable[..., list[object]], write: Callable[..., str], code: str
) -> None:
    fault = play(write(head=WIRE, step=f"{code}\nsilent()"), "x")[-1]
    assert isinstance(fault, EnvProtocolError) and fault.code == "SPD805"
    assert fault.evidence.phase == "step"


@pytest.mark.parametrize("size", [1 << 20, 1 << 30, (1 << 32) - 1])
def test_hostile_length_is_refused_on_the_header_alone(
    play: Callable[..., list[object]], write: Callable[..., str], size: int
) -> None:
    fault = play(write(head=WIRE, step=f"send(struct.pack('<I', {size}))\nsilent()"), "x")[-1]
    assert isinstance(fault, EnvOutputTooLarge) and fault.code == "SPD804"


def test_hostile_flood_of_legal_chunks_is_bounded(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    step = """
    item = [4, "w" * 60000, 0.0, False, False, b"{}", 0, ""]
    for place in range(8):
        send(reply(request().nonce, [item], place, False))
    silent()
    """
    with opened(bare, write(head=WIRE, step=step), 4) as child, pytest.raises(EnvFault):
        child.step(range(4), ["x"] * 4)


@pytest.mark.parametrize(
    "code",
    [
        "send(reply(request().nonce)[:3])",
        "send(reply(request().nonce)[:-1])",
        "for byte in reply(request().nonce):\n    send(bytes([byte]))\n    wait(0.1)",
        "pass",
    ],
    ids=["part of a header", "part of a body", "drip-fed", "nothing"],
)
def test_hostile_stall_ends_at_the_deadline(
    play: Callable[..., list[object]], write: Callable[..., str], code: str
) -> None:
    fault = play(write(head=WIRE, step=f"{code}\nsilent()"), "x")[-1]
    assert isinstance(fault, EnvTimeout)


@pytest.mark.parametrize("ahead", ["request().nonce", "request().nonce + 1", "0"])
def test_hostile_reply_for_the_next_request_is_refused(
    play: Callable[..., list[object]], write: Callable[..., str], ahead: str
) -> None:
    step = f"""
    if action == "forge":
        send(reply(request().nonce) + reply({ahead}))
        wait(60)
    """
    found = play(write(head=WIRE, step=step), "forge", "x")
    assert isinstance(found[-1], EnvProtocolError)


def test_hostile_forged_reply_is_a_claim_like_any_other(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    # Native code in the child can answer in the harness's name. What it can't do is say more
    # than the class itself could, nor answer a request that was not made.
    step = "send(reply(request().nonce))\nsilent()"
    with opened(bare, write(head=WIRE, step=step)) as child:
        assert child.step([0], ["x"]) == [RawStep("won", 1.0, True, False, b"{}")]
        with pytest.raises(EnvTimeout):
            child.step([0], ["y"])


def test_hostile_child_that_never_reads_is_found(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    step = "send(reply(request().nonce))\nsilent()"
    with opened(bare, write(head=WIRE, step=step)) as child:
        child.step([0], ["x"])
        with pytest.raises(EnvTimeout) as caught:
            child.step([0], ["much text " * 100_000])
    assert len(caught.value.evidence.last_action or "") <= 200


def test_hostile_request_larger_than_a_pipe_arrives(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    with opened(bare, write(step="said = str(len(action))")) as child:
        (item,) = child.step([0], ["x" * 3_000_000])
        assert isinstance(item, RawStep) and item.observation == "3000000"


def test_hostile_patch_of_every_function_ends_in_a_claim_or_a_fault(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = """
    def always(*args, **kwargs):
        return "won", 1.0, True, False, {"valid": True}
    for name, module in list(sys.modules.items()):
        for key in list(vars(module)):
            if callable(getattr(module, key, None)) and not key.startswith("__"):
                try:
                    setattr(module, key, always)
                except (AttributeError, TypeError):
                    pass
    """
    last = play(write(head="import sys", step=step), "x", "y")[-1]
    if isinstance(last, list):
        # It may still answer, but only with claims of the types that a step has.
        assert all(isinstance(item, RawStep | Raised) for item in last)
    else:
        assert isinstance(last, EnvFault)


PATCHES = [
    # What sends a group by column.
    "columns._encode = lambda value: b''",
    "columns._encode = lambda value: b'\\xff' * 200",
    "columns._Group.send = lambda self, *a, **k: os.write(4, b'x' * 1000)",
    "columns._Group._columns = lambda self: (['a'], ['b'], None, None, None)",
    "columns.play = lambda *a: (0, None)",
    "columns.play = lambda *a: (0, 7)",
    # What sends it one by one, where something was printed.
    "print(1); child._encode = lambda value: b''",
    "print(1); child._encode = lambda value: b'\\xff' * 200",
    "print(1); child.Child._send = lambda self, *a: os.write(4, b'x' * 1000)",
    "print(1); child.Child._batch = lambda *a: None",
    "print(1); child.claims.text = lambda value: 7",
    "print(1); child.claims.number = lambda value: 'free'",
    "print(1); child.claims.flag = lambda value: None",
]


@pytest.mark.parametrize("patch", PATCHES)
def test_hostile_patch_of_the_harness_is_a_fault(
    play: Callable[..., list[object]], write: Callable[..., str], patch: str
) -> None:
    head = """
        import os, sys
        child = sys.modules["spade_runtime.sandbox.child"]
        columns = sys.modules["spade_runtime.sandbox.columns"]
    """
    slots = GROUP_MIN if patch.startswith("columns") else 1
    last = play(write(head=head, step=patch), "x", "y", slots=slots)[-1]
    assert isinstance(last, EnvProtocolError | EnvTimeout | EnvOutputTooLarge | EnvCrashed), last


def test_hostile_patched_harness_of_one_child_is_not_that_of_the_next(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], healthy: str
) -> None:
    head = "import sys"
    step = "sys.modules['spade_runtime.sandbox.claims'].number = lambda value: 1.0"
    with opened(bare, write(head=head, step=step)) as child:
        child.step([0], ["x"])
    with opened(bare, healthy) as child:
        (item,) = child.step([0], ["go"])
        assert isinstance(item, RawStep) and item.reward == 0.0


@pytest.mark.parametrize("kind", ["observation", "printed", "info"])
def test_hostile_hundred_megabytes_are_never_read(
    play: Callable[..., list[object]], write: Callable[..., str], kind: str
) -> None:
    code = {
        "observation": "said = 'x' * 10 ** 7",
        "printed": "print('x' * 10 ** 7)",
        "info": "info['x'] = 'x' * 10 ** 7",
    }[kind]
    last = play(write(step=code), "x")[-1]
    if isinstance(last, list):
        assert isinstance(last[0], Raised) and last[0].code in ("SPD804", "SPD802")
    else:
        assert isinstance(last, SpadeError)


def test_hostile_nesting_of_info_is_no_json(
    play: Callable[..., list[object]], write: Callable[..., str]
) -> None:
    step = "doll = []\nfor _ in range(100_000):\n    doll = [doll]\ninfo['doll'] = doll"
    ((item,),) = play(write(step=step), "x")[-1:]
    assert isinstance(item, RawStep) and "not JSON" in item.info.reason  # type: ignore[union-attr]


# What a class may return that has no place in an episode, and what the session says of it.
UNFIT = {
    "nan": ("'a', float('nan'), True, False, {}", "SPD403"),
    "infinite": ("'a', float('-inf'), True, False, {}", "SPD403"),
    "2**80": ("'a', 2 ** 80, True, False, {}", "SPD403"),
    "text for a reward": ("'a', '1', True, False, {}", "SPD402"),
    "flag for a reward": ("'a', True, True, False, {}", "SPD402"),
    "number for a flag": ("'a', 1.0, 1, False, {}", "SPD402"),
    "surrogate": ("'\\ud800', 0.0, True, False, {}", "SPD305"),
    "bytes": ("b'a', 0.0, True, False, {}", "SPD402"),
    "set in the info": ("'a', 0.0, True, False, {'x': {1, 2}}", "SPD407"),
    "nan in the info": ("'a', 0.0, True, False, {'x': float('nan')}", "SPD407"),
    "set for the info": ("'a', 0.0, True, False, {1, 2}", "SPD402"),
    "four values": ("'a', 0.0, True, False", "SPD402"),
    "six values": ("'a', 0.0, True, False, {}, 1", "SPD402"),
    "a list": ("['a', 0.0, True, False, {}]", "SPD402"),
    "a tuple of its own": ("Five(('a', 1.0, True, False, {}))", "SPD402"),
    "a text of its own": ("Word('a'), 1.0, True, False, {}", "SPD402"),
    "nothing": ("None", "SPD402"),
}


@pytest.mark.parametrize(("value", "code"), UNFIT.values(), ids=UNFIT.keys())
def test_hostile_value_is_a_fault_and_pays_nothing(
    bare: SandboxPool, write: Callable[..., str], value: str, code: str
) -> None:
    head = "class Five(tuple):\n    pass\n\nclass Word(str):\n    pass\n"
    with bare.open(write(head=head, step=f"return {value}")) as session:
        session.reset([1])
        (result,) = session.step(["x"])
    assert result.truncated and result.reward == 0.0 and result.observation == ""
    assert result.info["spade"]["fault"]["code"] == code
