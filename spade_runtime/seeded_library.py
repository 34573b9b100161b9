"""Chance, clock and identity as the standard library offers them, drawn from the current instance.

Each function returns the names that replace those of one module. The classes are subclasses of the
real ones where code may test for them.
"""

from __future__ import annotations

import calendar
import datetime
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from spade_runtime.curated import words
from spade_runtime.entropy import Entropy

_EPOCH = datetime.datetime(1970, 1, 1)
_NODE = 0x5ADE00000001
_DRAWS = words(
    "betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits "
    "getstate lognormvariate normalvariate paretovariate randbytes randint random randrange "
    "sample setstate shuffle triangular uniform vonmisesvariate weibullvariate"
)
_NUMPY_DRAWS = words(
    "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric get_state "
    "gumbel hypergeometric laplace logistic lognormal logseries multinomial multivariate_normal "
    "negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power "
    "rand randint randn random random_integers random_sample rayleigh set_state shuffle "
    "standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular "
    "uniform vonmises wald weibull zipf"
)


def replacements(entropy: Entropy) -> dict[str, Callable[[], Mapping[str, Any]]]:
    """What replaces names of the real modules, by module, made when it is asked for."""
    return {
        "random": lambda: random_names(entropy),
        "time": lambda: time_names(entropy),
        "datetime": lambda: datetime_names(entropy),
        "uuid": lambda: uuid_names(entropy),
        "statistics": lambda: statistics_names(entropy),
        "numpy.random": lambda: numpy_random_names(entropy),
    }


def _draw(entropy: Entropy, name: str) -> Callable[..., Any]:
    def draw(*args: Any, **values: Any) -> Any:
        return getattr(entropy.current.rng, name)(*args, **values)

    draw.__name__ = draw.__qualname__ = name
    return draw


def random_names(entropy: Entropy) -> dict[str, Any]:
    """`random`: functions on the instance's generator, `Random()` seeded where it was not."""

    class Random(random.Random, metaclass=_Real):
        _stands_for = random.Random

        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(entropy.current.fresh() if a is None else a, version)

    def seed(a: Any = None, version: int = 2) -> None:
        state = entropy.current
        state.rng.seed(state.fresh() if a is None else a, version)

    found: dict[str, Any] = {
        name: _draw(entropy, name) for name in _DRAWS if hasattr(random.Random, name)
    }
    found.update(_frequent_draws(entropy))
    return {**found, "seed": seed, "Random": Random, "SystemRandom": Random}


def _frequent_draws(entropy: Entropy) -> dict[str, Callable[..., Any]]:
    """What environments draw most, with fixed parameters: half the cost of `_draw`."""

    def random() -> float:
        return entropy.current.rng.random()

    def randint(a: int, b: int) -> int:
        return entropy.current.rng.randint(a, b)

    def uniform(a: float, b: float) -> float:
        return entropy.current.rng.uniform(a, b)

    def choice(seq: Any) -> Any:
        return entropy.current.rng.choice(seq)

    def shuffle(x: Any) -> None:
        entropy.current.rng.shuffle(x)

    return {f.__name__: f for f in (random, randint, uniform, choice, shuffle)}


def time_names(entropy: Entropy) -> dict[str, Any]:
    """`time`: a clock that a read moves on by a millisecond, in UTC."""

    def now() -> float:
        return entropy.current.now_ns() / 1e9

    def nanoseconds() -> int:
        return entropy.current.now_ns()

    def monotonic() -> float:
        return entropy.current.monotonic_ns() / 1e9

    def monotonic_ns() -> int:
        return entropy.current.monotonic_ns()

    def sleep(seconds: float) -> None:
        entropy.current.sleep(seconds)

    def gmtime(seconds: float | None = None) -> time.struct_time:
        return time.gmtime(now() if seconds is None else seconds)

    def asctime(moment: Any = None) -> str:
        return time.asctime(gmtime() if moment is None else moment)

    def ctime(seconds: float | None = None) -> str:
        return time.asctime(gmtime(seconds))

    def strftime(form: str, moment: Any = None) -> str:
        return time.strftime(form, gmtime() if moment is None else moment)

    def mktime(moment: Any) -> float:
        return float(calendar.timegm(moment))

    found: dict[str, Any] = {"time": now, "time_ns": nanoseconds, "sleep": sleep}
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        found[name] = monotonic
        found[f"{name}_ns"] = monotonic_ns
    found.update(gmtime=gmtime, localtime=gmtime, asctime=asctime, ctime=ctime, mktime=mktime)
    found.update(strftime=strftime, timezone=0, altzone=0, daylight=0, tzname=("UTC", "UTC"))
    return found


class _Real(type):
    """Makes a subclass stand for the real type in tests; what extends it is an ordinary class."""

    def __instancecheck__(cls, obj: Any) -> bool:
        real = vars(cls).get("_stands_for")
        return type.__instancecheck__(cls, obj) if real is None else isinstance(obj, real)

    def __subclasscheck__(cls, other: type) -> bool:
        real = vars(cls).get("_stands_for")
        return type.__subclasscheck__(cls, other) if real is None else issubclass(other, real)


def datetime_names(entropy: Entropy) -> dict[str, Any]:
    """`datetime`: `now` and `today` from the instance's clock, naive times in UTC."""

    def moment() -> datetime.datetime:
        return _EPOCH + datetime.timedelta(microseconds=entropy.current.now_ns() // 1000)

    class Date(datetime.date, metaclass=_Real):
        _stands_for = datetime.date

        @classmethod
        def today(cls) -> Any:
            return cls.fromordinal(moment().toordinal())

        @classmethod
        def fromtimestamp(cls, timestamp: float) -> Any:
            return cls.fromordinal((_EPOCH + datetime.timedelta(seconds=timestamp)).toordinal())

        def __repr__(self) -> str:
            return datetime.date.__repr__(datetime.date(self.year, self.month, self.day))

    class Datetime(datetime.datetime, metaclass=_Real):
        _stands_for = datetime.datetime

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls._from(moment(), tz)

        @classmethod
        def today(cls) -> Any:
            return cls._from(moment(), None)

        @classmethod
        def utcnow(cls) -> Any:
            return cls._from(moment(), None)

        @classmethod
        def fromtimestamp(cls, timestamp: float, tz: datetime.tzinfo | None = None) -> Any:
            return cls._from(_EPOCH + datetime.timedelta(seconds=timestamp), tz)

        @classmethod
        def utcfromtimestamp(cls, timestamp: float) -> Any:
            return cls._from(_EPOCH + datetime.timedelta(seconds=timestamp), None)

        @classmethod
        def _from(cls, at: datetime.datetime, tz: datetime.tzinfo | None) -> Any:
            found = cls(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)
            if tz is None:
                return found
            return tz.fromutc(found.replace(tzinfo=tz))

        def timestamp(self) -> float:
            if self.tzinfo is None:
                return float((datetime.datetime.__sub__(self, _EPOCH)).total_seconds())
            return super().timestamp()

        def __repr__(self) -> str:
            parts = (self.year, self.month, self.day, self.hour, self.minute, self.second)
            plain = datetime.datetime(*parts, self.microsecond, self.tzinfo, fold=self.fold)
            return datetime.datetime.__repr__(plain)

    Date.__name__ = Date.__qualname__ = "date"
    Datetime.__name__ = Datetime.__qualname__ = "datetime"
    Date.__module__ = Datetime.__module__ = "datetime"
    return {"date": Date, "datetime": Datetime}


def uuid_names(entropy: Entropy) -> dict[str, Any]:
    """`uuid`: random identifiers from the instance's seed, time-based ones from its clock."""

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=entropy.current.uuid.getrandbits(128), version=4)

    def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
        state = entropy.current
        # 100-nanosecond intervals since 1582-10-15, as RFC 9562 counts them.
        stamp = state.now_ns() // 100 + 0x01B21DD213814000
        sequence = state.uuid.getrandbits(14) if clock_seq is None else clock_seq & 0x3FFF
        fields = (
            stamp & 0xFFFFFFFF,
            (stamp >> 32) & 0xFFFF,
            (stamp >> 48) & 0x0FFF,
            (sequence >> 8) & 0x3F,
            sequence & 0xFF,
            _NODE if node is None else node,
        )
        return uuid.UUID(fields=fields, version=1)

    return {"uuid4": uuid4, "uuid1": uuid1, "getnode": lambda: _NODE}


def statistics_names(entropy: Entropy) -> dict[str, Any]:
    """`statistics`: samples of a normal distribution from the instance's generator."""

    class NormalDist(statistics.NormalDist):
        def samples(self, n: int, *, seed: Any = None) -> list[float]:  # type: ignore[override]
            return super().samples(n, seed=entropy.current.fresh() if seed is None else seed)

    return {"NormalDist": NormalDist}


def numpy_random_names(entropy: Entropy) -> dict[str, Any]:
    """`numpy.random`: the global functions on the instance's state, generators seeded."""
    real = sys.modules["numpy.random"]

    def draw(name: str) -> Callable[..., Any]:
        def drawn(*args: Any, **values: Any) -> Any:
            return getattr(entropy.current.numpy, name)(*args, **values)

        drawn.__name__ = drawn.__qualname__ = name
        return drawn

    def seed(value: Any = None) -> None:
        state = entropy.current
        state.numpy.seed(state.fresh() & 0xFFFFFFFF if value is None else value)

    def default_rng(seed: Any = None) -> Any:
        return real.default_rng(entropy.current.fresh() if seed is None else seed)

    class RandomState(real.RandomState):  # type: ignore[name-defined,misc]
        def __init__(self, seed: Any = None) -> None:
            super().__init__(entropy.current.fresh() & 0xFFFFFFFF if seed is None else seed)

    def seeded(kind: Any) -> Callable[..., Any]:
        def build(seed: Any = None) -> Any:
            return kind(entropy.current.fresh() if seed is None else seed)

        build.__name__ = build.__qualname__ = kind.__name__
        return build

    found: dict[str, Any] = {n: draw(n) for n in _NUMPY_DRAWS if hasattr(real.RandomState, n)}
    for name in ("MT19937", "PCG64", "Philox", "SFC64", "SeedSequence"):
        found[name] = seeded(getattr(real, name))
    found.update(ranf=found["random_sample"], sample=found["random_sample"])
    found.update(seed=seed, default_rng=default_rng, RandomState=RandomState)
    return found
