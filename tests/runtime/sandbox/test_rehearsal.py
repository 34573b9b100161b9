"""What a zygote makes before its children: caches that are warm, rooms, and a heap without gaps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from spade_runtime.sandbox import holes, source
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep

SAMPLES = """
import sys
from spade_runtime.sandbox import rehearsal
from spade_runtime.sandbox.child import Child
from spade_runtime.sandbox.exchange import DECODERS
from spade_runtime.sandbox.wire import COLUMNS_MARK, Inspect, Load, Raised, Bad

sent = []
rehearsal._Silent.write = lambda self, data: sent.append(data[4:])
rehearsal.rehearse(1)
assert "environment" not in sys.modules
assert not any(b"Error" in body for body in sent), [body for body in sent if b"Error" in body]
assert sum(body[0] == COLUMNS_MARK for body in sent) >= 8
inspections = [body for body in sent if b"SampleEnv" in body]
assert len(inspections) == 4
for body in inspections:
    (reading,) = DECODERS["inspect"].decode(body).items
    assert reading.inspection.findings == [], reading
"""


def test_the_samples_are_environments_without_a_fault() -> None:
    # In a process of its own: what is rehearsed stays in the interpreter.
    done = subprocess.run([sys.executable, "-c", SAMPLES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_room_is_given_out_once_and_as_it_was_made() -> None:
    code = (
        "from spade_runtime.sandbox import source\n"
        "import sys\n"
        "rooms = source.Rooms()\n"
        "rooms.make_ready()\n"
        "assert 'environment' not in sys.modules\n"
        "first = rooms.take(guarded=True, dialect='contract')\n"
        "assert sys.modules['environment'] is first.module\n"
        "assert vars(first.module) is first.namespace\n"
        "second = rooms.take(guarded=True, dialect='contract')\n"
        "assert second.namespace is not first.namespace\n"
        "assert second.entropy is not first.entropy\n"
        "assert second.namespace.keys() == first.namespace.keys()\n"
        "drawn = [one.namespace['random'].random() for one in (first, second)]\n"
        "assert drawn[0] == drawn[1]\n"
        "other = rooms.take(guarded=False, dialect='published')\n"
        "assert 'open' in vars(other.namespace['__builtins__']) if not isinstance(\n"
        "    other.namespace['__builtins__'], dict) else other.namespace['__builtins__']\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("policy", ["on", "off"])
def test_children_do_not_share_what_was_made_for_them(
    guarded: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], policy: str
) -> None:
    marks = write(
        head="random.marked = True", step="said = str(getattr(random, 'marked', 'unmarked'))"
    )
    reads = write(step="said = str(getattr(random, 'marked', 'unmarked'))")
    seen = []
    for text in (marks, reads):
        with opened(guarded, text, policy=policy) as child:
            (item,) = child.step([0], ["x"])
            assert isinstance(item, RawStep)
            seen.append(item.observation)
    assert seen[1] == "unmarked"


def test_gaps_of_each_size_are_filled() -> None:
    freed = [bytes(100) for _ in range(30_000)]
    gaps = {id(one) for one in freed[::8]}
    del freed[::8]
    kept = holes.fill()
    assert len(kept) == 32
    taken = {id(one) for row in kept for one in row}
    assert len(gaps & taken) > 0.9 * len(gaps)
    assert all(sys.getsizeof(one) <= 512 for row in kept for one in row)


def test_this_process_has_no_rooms() -> None:
    assert source.ROOMS._ready == {} and source.ROOMS.filling == []
