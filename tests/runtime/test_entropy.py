"""Chance, clock and identity come from the seed of the instance that plays."""

import random
import subprocess
import sys

import pytest

from spade_runtime.entropy import CLOCK_START_NS, Entropy, derive
from spade_runtime.views import namespace

PROGRAM = """
import random, time, uuid, datetime, statistics
def draw():
    return [
        random.random(), random.randint(1, 10**9), random.sample(range(99), 5), random.gauss(0, 1),
        random.choice("abcdef"), random.getrandbits(64), random.Random().random(),
        random.SystemRandom().random(), random.randbytes(4),
        time.time(), time.monotonic(), time.perf_counter_ns(), time.strftime("%H:%M:%S"),
        time.ctime(), time.localtime().tm_hour, str(datetime.datetime.now()),
        str(datetime.date.today()), str(datetime.datetime.now(datetime.timezone.utc)),
        str(uuid.uuid4()), str(uuid.uuid1()), uuid.getnode(),
        statistics.NormalDist(0, 1).samples(2),
    ]
"""


def setting():
    entropy = Entropy()
    found = namespace(entropy, policy=True)
    exec(PROGRAM, found)
    return entropy, found["draw"]


def test_a_seed_determines_everything():
    entropy, draw = setting()
    entropy.new(7)
    first = draw()
    entropy.new(8)
    other = draw()
    entropy.new(7)
    assert draw() == first
    unlike = [i for i, (a, b) in enumerate(zip(first, other, strict=True)) if a != b]
    assert {0, 1, 3, 5, 6, 7, 18} <= set(unlike)


def test_two_processes_with_different_hash_seeds_agree():
    script = (
        "from spade_runtime.entropy import Entropy\nfrom spade_runtime.views import namespace\n"
        f"e = Entropy()\nn = namespace(e, policy=True)\nexec({PROGRAM!r}, n)\n"
        "print(n['draw']())\ne.new(5)\nprint(n['draw']())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "America/New_York"))
    }
    assert len(outputs) == 1


def test_module_functions_match_a_seeded_generator():
    entropy, _ = setting()
    found = namespace(entropy, policy=True)
    entropy.new(11)
    mine = random.Random(11)
    assert [found["random"].random() for _ in range(3)] == [mine.random() for _ in range(3)]
    found["random"].seed(3)
    mine.seed(3)
    assert found["random"].sample(range(50), 9) == mine.sample(range(50), 9)
    assert found["random"].Random(5).random() == random.Random(5).random()
    state = found["random"].getstate()
    value = found["random"].random()
    found["random"].setstate(state)
    assert found["random"].random() == value


def test_seed_without_an_argument_is_deterministic():
    entropy, _ = setting()
    module = namespace(entropy, policy=True)["random"]
    drawn = []
    for _ in range(2):
        entropy.new(4)
        module.seed()
        drawn.append((module.random(), module.Random().random(), module.Random(None).random()))
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 3


def test_instances_do_not_disturb_each_other():
    entropy, draw = setting()
    alone = []
    for seed in (1, 2):
        entropy.new(seed)
        alone.append([draw() for _ in range(3)])
    states = [entropy.new(seed) for seed in (1, 2)]
    mixed = [[], []]
    for _ in range(3):
        for slot, state in enumerate(states):
            entropy.activate(state)
            mixed[slot].append(draw())
    assert mixed == alone


def test_the_clock_moves_by_reads_and_sleep_only():
    entropy, _ = setting()
    time = namespace(entropy, policy=False)["__builtins__"]["__import__"]("time")
    entropy.new(0)
    assert time.time_ns() == CLOCK_START_NS + 1_000_000
    before = time.time()
    time.sleep(2.5)
    assert time.time() - before == pytest.approx(2.501)
    with pytest.raises(ValueError, match="sleep"):
        time.sleep(-1)
    assert time.mktime(time.gmtime(86400)) == 86400.0


def test_datetime_stands_for_the_real_type():
    import datetime as real

    entropy, _ = setting()
    module = namespace(entropy, policy=True)["datetime"]
    now = module.datetime.now()
    assert isinstance(now, real.datetime) and isinstance(now.date(), module.date)
    assert isinstance(now, module.date) and not isinstance(real.date(2024, 1, 1), module.datetime)
    assert issubclass(module.datetime, module.date)
    assert repr(now).startswith("datetime.datetime(2026, 1, 5, 9, 0,")
    assert now + module.timedelta(days=1) > now
    assert module.datetime(2024, 1, 2) == real.datetime(2024, 1, 2)
    assert module.datetime.strptime("2024-05-06", "%Y-%m-%d").date() == module.date(2024, 5, 6)
    assert module.datetime.fromtimestamp(0) == real.datetime(1970, 1, 1)
    assert module.datetime(1970, 1, 2).timestamp() == 86400.0
    assert module.datetime.now(module.timezone.utc).utcoffset() == real.timedelta(0)
    assert module.date.today().isoformat() == "2026-01-05"
    assert repr(module.date(2024, 1, 2)) == "datetime.date(2024, 1, 2)"


def test_subclasses_of_the_stand_ins_are_ordinary_classes():
    import datetime as real

    entropy, _ = setting()
    found = namespace(entropy, policy=True)
    source = (
        "class Day(datetime.date): pass\nclass Dice(random.Random):\n"
        "  def roll(self): return self.randint(1, 6)\n"
    )
    exec(source, found)
    assert isinstance(found["Day"](2024, 1, 2), found["datetime"].date)
    assert not isinstance(real.date(2024, 1, 2), found["Day"])
    assert found["Dice"](3).roll() == random.Random(3).randint(1, 6)
    assert isinstance(random.Random(1), found["random"].Random)
    assert not isinstance(random.Random(1), found["Dice"])
    assert issubclass(found["Dice"], found["random"].Random)


def test_uuids_are_proper():
    entropy, _ = setting()
    module = namespace(entropy, policy=True)["__builtins__"]["__import__"]("uuid")
    entropy.new(1)
    made = [module.uuid4() for _ in range(3)]
    assert len(set(made)) == 3 and {u.version for u in made} == {4}
    assert module.uuid1().version == 1
    named = [str(module.uuid5(module.NAMESPACE_DNS, "a")) for _ in range(2)]
    assert named[0] == named[1]


def test_real_generators_are_kept_apart_where_asked():
    entropy = Entropy(real_generators=True)
    kept = random.getstate()
    try:
        a, b = entropy.new(1), entropy.new(2)
        entropy.activate(a)
        first = random.random()
        entropy.activate(b)
        random.random()
        entropy.activate(a)
        second = random.random()
        mine = random.Random(1)
        assert [first, second] == [mine.random(), mine.random()]
    finally:
        random.setstate(kept)


def test_numpy_draws_from_the_instance():
    numpy = pytest.importorskip("numpy")
    entropy = Entropy()
    found = namespace(entropy, policy=True)
    exec(
        "import numpy as np\ndef draw():\n"
        "  return [np.random.rand(), int(np.random.randint(9**9)),"
        " np.random.default_rng().random(),"
        " np.random.default_rng(3).random(), np.random.RandomState().rand(), np.random.choice(5),"
        " np.random.permutation(4).tolist()]",
        found,
    )
    draws = []
    for seed in (1, 2, 1):
        entropy.new(seed)
        draws.append(found["draw"]())
    assert draws[0] == draws[2] != draws[1]
    entropy.new(1)
    assert found["draw"]()[0] == numpy.random.RandomState(1).rand()
    assert found["draw"]()[3] == numpy.random.default_rng(3).random()


def test_derived_seeds_never_change():
    # Recorded episodes are replayed from their seeds, so these values are part of the format.
    assert derive("uuid", 7) == 0xBC5FC2A113C62CA18204E5926935FBCB
    assert derive("entropy", 7) != derive("uuid", 7) != derive("uuid", 8)
