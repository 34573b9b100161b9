"""Environments that reach for the system: by number where Python has no name for it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spade_runtime.errors import EnvCrashed, EnvFault
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import Raised, RawStep

pytestmark = pytest.mark.hostile

SIGSYS, SIGSEGV = 31, 11

# The allow-list, by name; reading and writing are allowed on the two pipes alone.
ALLOWED = (
    "brk clock_gettime exit exit_group futex getrandom gettimeofday madvise mmap mprotect mremap "
    "munmap read restart_syscall rt_sigreturn sched_yield time write"
)
DEADLY = (
    "add_key bind bpf connect delete_module execve execveat finit_module init_module "
    "io_uring_enter io_uring_register io_uring_setup kexec_file_load kexec_load keyctl mount "
    "move_mount open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root "
    "process_vm_readv process_vm_writev ptrace request_key setns socket socketpair umount2 "
    "unshare userfaultfd"
)


def number(name: str) -> int | None:
    import pyseccomp

    try:
        found = int(pyseccomp.resolve_syscall(pyseccomp.system_arch(), name))
    except ValueError:
        return None
    return found if found >= 0 else None


def said(item: object) -> str:
    assert isinstance(item, RawStep) and isinstance(item.observation, str), item
    return item.observation


@pytest.fixture
def native(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> Iterator[RawChild]:
    """A child that runs the actions it is given as code."""
    with opened(bare, write(head=by_number, step="said = str(eval(action, globals()))")) as child:
        yield child


def test_hostile_every_other_system_call_is_refused(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    known = {number(name) for name in [*ALLOWED.split(), *DEADLY.split()]}
    # The kernel exempts these two from every filter; off its own trampoline they do nothing.
    known |= {number("uretprobe") or 335, number("uprobe") or 336}
    numbers = [one for one in range(480) if one not in known]
    # Outside the sandbox many of these succeed, so a filter that was not loaded would show.
    step = """
    said = str({n: e for n in map(int, action.split()) if (e := call(n)) != "EPERM"})
    """
    with opened(bare, write(head=by_number, step=step)) as child:
        assert said(child.step([0], [" ".join(map(str, numbers))])[0]) == "{}"
    assert len(numbers) > 300


@pytest.mark.parametrize("name", DEADLY.split())
def test_hostile_call_ends_the_process(native: RawChild, name: str) -> None:
    place = number(name)
    if place is None:
        pytest.skip(f"this architecture has no {name}")
    with pytest.raises(EnvCrashed) as caught:
        native.step([0], [f"call({place})"])
    assert caught.value.evidence.signal == SIGSYS
    assert "system call" in str(caught.value)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 and int80 are of x86-64")
@pytest.mark.parametrize("place", [0x40000000 + 39, 0x40000000, 0x40000000 + 520])
def test_hostile_x32_numbers_end_the_process(native: RawChild, place: int) -> None:
    with pytest.raises(EnvCrashed) as caught:
        native.step([0], [f"call({place})"])
    assert caught.value.evidence.signal == SIGSYS


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x32 and int80 are of x86-64")
def test_hostile_int80_ends_the_process(
    bare: SandboxPool, opened: Callable[..., RawChild], write: Callable[..., str], by_number: str
) -> None:
    # The two bytes stand somewhere in the code of libc or Python; calling their address runs them.
    head = (
        by_number
        + """
def code_around(address):
    base = address & ~4095
    while ctypes.string_at(base, 4) != bytes([127]) + b"ELF":
        base -= 4096
    word = lambda place, size: int.from_bytes(ctypes.string_at(place, size), "little")
    step = word(base + 54, 2)
    for entry in range(base + word(base + 32, 8), base + 4096, step)[:word(base + 56, 2)]:
        if word(entry, 4) == 1 and word(entry + 4, 4) & 1:
            start = base + word(entry + 16, 8)
            return start, ctypes.string_at(start, word(entry + 40, 8))
"""
    )
    step = """
    if action == "look":
        for library, name in ((libc, "qsort"), (ctypes.pythonapi, "PyEval_EvalCode")):
            start, code = code_around(
                ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            )
            place = code.find(bytes([0xCD, 0x80]))
            if place >= 0:
                self.place = start + place
                said = "found"
                break
    else:
        ctypes.CFUNCTYPE(ctypes.c_int)(self.place)()
    """
    with opened(bare, write(head=head, step=step)) as child:
        if said(child.step([0], ["look"])[0]) != "found":
            pytest.skip("this Python's code holds no int80 to jump to")
        with pytest.raises(EnvCrashed) as caught:
            child.step([0], ["jump"])
        # A kernel without 32-bit emulation faults before it looks at any filter.
        assert caught.value.evidence.signal in (SIGSYS, SIGSEGV)


@pytest.mark.parametrize(
    "code",
    [
        "call(9, 0, 4096, 7, 0x22, -1, 0)",  # mmap, anonymous, executable
        "call(9, 0, 4096, 1, 0x02, 3, 0)",  # mmap of a file
        "call(10, ctypes.addressof(ctypes.create_string_buffer(9000)) & ~4095, 4096, 7)",
        "call(135, 0x0400000)",  # personality: everything that is readable may be executed
        "call(30, 0, 0, 0o100000)",  # shmat, executable
    ],
    ids=["mmap", "file", "mprotect", "personality", "shmat"],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_hostile_executable_memory_is_refused(native: RawChild, code: str) -> None:
    assert said(native.step([0], [code])[0]) == "EPERM"


@pytest.mark.parametrize(
    "code",
    [
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "__import__('_thread').start_new_thread(print, ())",
        "os.kill(1, 9)",
        "os.kill(-1, 9)",
        "os.kill(os.getppid(), 9)",
        "os.setuid(0)",
        "os.open('/etc/passwd', 0)",
        "os.open('/proc/1/environ', 0)",
        "os.open('/proc/self/mem', 2)",
        "os.open(sys.modules['spade_runtime.sandbox.child'].__file__, 0)",
        "open(sys._getframe().f_code.co_filename)",
        "os.listdir('/')",
        "os.stat('/')",
        "os.mkdir('/x')",
        "os.pipe()",
        "os.dup(3)",
        "os.dup2(3, 9)",
        "os.close(4)",
        "os.read(0, 1)",
        "os.read(4, 1)",
        "os.write(1, b'x')",
        "os.write(3, b'x')",
        "os.memfd_create('x')",
        "os.sched_setaffinity(0, [0])",
        "os.nice(-5)",
    ],
)
def test_hostile_call_is_refused_and_the_child_serves_on(native: RawChild, code: str) -> None:
    (item,) = native.step([0], [code])
    assert isinstance(item, Raised), item
    assert item.exc_type in ("PermissionError", "RuntimeError", "OSError"), item
    assert "Errno 1]" in item.message or item.exc_type == "RuntimeError", item
    assert said(native.step([0], ["40 + 2"])[0]) == "42"


@pytest.mark.parametrize("code", ["os.system('true') >> 8 == 127", "os.closerange(0, 64) is None"])
def test_hostile_call_without_an_error_has_no_effect(native: RawChild, code: str) -> None:
    assert said(native.step([0], [code])[0]) == "True"
    assert said(native.step([0], ["40 + 2"])[0]) == "42"


def test_hostile_exec_ends_the_process(native: RawChild) -> None:
    with pytest.raises(EnvCrashed):
        native.step([0], ["os.execv('/bin/true', ['true'])"])


@pytest.mark.parametrize("module", ["socket", "ctypes", "mmap", "subprocess", "pathlib"])
def test_hostile_import_of_what_was_not_loaded(native: RawChild, module: str) -> None:
    (item,) = native.step([0], [f"__import__({module!r})"])
    assert isinstance(item, Raised) and item.exc_type == "ModuleNotFoundError"


def test_hostile_signal_handler_is_refused(native: RawChild) -> None:
    (item,) = native.step([0], ["__import__('signal').signal(14, print)"])
    assert isinstance(item, Raised)


def test_hostile_search_for_a_secret_of_the_trainer(
    opened: Callable[..., RawChild],
    write: Callable[..., str],
    by_number: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two halves, so that the test's own request does not bring the secret along.
    first, second = secrets.token_hex(16), secrets.token_hex(16)
    monkeypatch.setenv("SPADE_TEST_SECRET", first + second)
    step = """
    first, second = action.split()
    found = [k for k, v in os.environ.items() if first in v]
    libc.sbrk.restype = ctypes.c_void_p
    top = libc.sbrk(0)
    block = ctypes.string_at(top - 2000000, 2000000)
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    place = 0
    while environ[place]:
        block += environ[place]
        place += 1
    needle = first.encode()
    while (at := block.find(needle)) >= 0:
        if block[at + len(needle):].startswith(second.encode()):
            found.append(at)
        block = block[at + 1:]
    said = str((found, place > 0))
    """
    with (
        SandboxPool(policy="off") as pool,
        opened(pool, write(head=by_number, step=step)) as child,
    ):
        assert said(child.step([0], [f"{first} {second}"])[0]) == "([], True)"
        assert "SPADE_TEST_SECRET" in os.environ


def test_hostile_modules_of_the_trainer_are_not_there(native: RawChild) -> None:
    names = (
        "numpy gymnasium pydantic torch pytest _pytest spade_envs spade_train spade_runtime.spec"
    )
    code = f"[n for n in {names.split()!r} if n in sys.modules]"
    assert said(native.step([0], [code])[0]) == "[]"


def test_hostile_only_the_two_pipes_are_open(
    opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    step = """
    said = ""
    for handle in range(1024):
        try:
            os.fstat(handle)
            said += f"{handle} "
        except OSError:
            pass
    """
    # Seccomp would refuse the question, so this looks without it.
    layers = frozenset({"rlimits", "uid", "namespaces", "landlock"})
    with (
        SandboxPool(level="best_effort", policy="off", layers=layers) as pool,
        opened(pool, write(head="import os", step=step)) as child,
    ):
        assert said(child.step([0], ["x"])[0]) == "3 4 "


def test_hostile_child_has_no_right_left(
    opened: Callable[..., RawChild], write: Callable[..., str]
) -> None:
    source = write(step="said = 'here'")
    with SandboxPool(policy="off") as pool, opened(pool, source) as child:
        status = Path(f"/proc/{child.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"
    if os.geteuid() == 0:
        uids = set(fields["Uid"].split())
        assert uids.isdisjoint({"0", str(os.getuid())}) and len(uids) == 1
    else:
        assert int(fields["CapBnd"], 16) == 0


def test_hostile_exit_is_never_a_success(native: RawChild) -> None:
    with pytest.raises(EnvCrashed) as caught:
        native.step([0], ["os._exit(0)"])
    assert caught.value.evidence.exit_status == 0


def test_hostile_abort_names_its_signal(native: RawChild) -> None:
    with pytest.raises(EnvFault) as caught:
        native.step([0], ["os.abort()"])
    assert caught.value.code == "SPD803" and caught.value.evidence.signal is not None
