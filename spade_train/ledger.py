"""What a run spends, by role, so that runs can be compared at equal cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

# The role is a plain word: these are the ones that the loop charges.
ROLES = ("designer", "agent", "hint", "judge", "heldout")
FORWARD_FLOPS = 2
TRAINING_FLOPS = 6


@dataclass(slots=True)
class Account:
    """What one role has spent.

    Attributes:
        tokens_in: tokens of prompts and of what environments said.
        tokens_out: tokens that the policy sampled.
        trained_tokens: tokens of rows that went through an update, prompts included.
        generations: calls of the policy, one a sequence.
        executions: episodes (agent) or sandbox runs (designer).
        validator_calls: sources that the validator judged.
        seconds: wall-clock seconds in which the role had the machine.
        flops: floating-point operations by the rule 2 x parameters x tokens, three times that for
            a training pass (forward and backward).
    """

    tokens_in: int = 0
    tokens_out: int = 0
    trained_tokens: int = 0
    generations: int = 0
    executions: int = 0
    validator_calls: int = 0
    seconds: float = 0.0
    flops: float = 0.0


class Ledger:
    """Accounts by role.

    >>> ledger = Ledger(parameters=1000)
    >>> ledger.generated("agent", tokens_in=10, tokens_out=5)
    >>> ledger.account("agent").flops
    30000.0
    """

    def __init__(self, parameters: int = 0) -> None:
        self.parameters = parameters
        self.accounts: dict[str, Account] = {}

    def account(self, role: str) -> Account:
        """Return a role's account, opened when it is first asked for."""
        return self.accounts.setdefault(role, Account())

    def generated(
        self, role: str, *, tokens_in: int, tokens_out: int, generations: int = 1, known: int = 0
    ) -> None:
        """Charge sampled sequences: the prompt is read once (KV cache), each new token once.

        Args:
            role: who spoke.
            tokens_in: tokens of the prompts.
            tokens_out: tokens that were sampled.
            generations: sequences.
            known: tokens of the prompts that were read at an earlier turn, and cost nothing again.
        """
        account = self.account(role)
        account.tokens_in += tokens_in
        account.tokens_out += tokens_out
        account.generations += generations
        account.flops += FORWARD_FLOPS * self.parameters * (tokens_in - known + tokens_out)

    def trained(self, role: str, tokens: int, *, passes: int = 1, forwards: int = 0) -> None:
        """Charge an update.

        Args:
            role: whose rows they were.
            tokens: tokens of the rows, prompts included.
            passes: forward and backward passes over them.
            forwards: forward passes besides (old and reference log-probabilities).
        """
        account = self.account(role)
        account.trained_tokens += tokens * passes
        rate = TRAINING_FLOPS * passes + FORWARD_FLOPS * forwards
        account.flops += rate * self.parameters * tokens

    def executed(self, role: str, count: int = 1) -> None:
        """Charge episodes or other runs in the sandbox."""
        self.account(role).executions += count

    def validated(self, role: str, count: int = 1) -> None:
        """Charge sources that the validator judged."""
        self.account(role).validator_calls += count

    @contextmanager
    def timed(self, role: str) -> Iterator[None]:
        """Charge the wall-clock seconds of a block."""
        start = perf_counter()
        try:
            yield
        finally:
            self.account(role).seconds += perf_counter() - start

    def total(self) -> Account:
        """Return the sum over all roles."""
        total = Account()
        for account in self.accounts.values():
            for name, value in asdict(account).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    def metrics(self) -> dict[str, float]:
        """Return the running totals as metrics: `tokens/<role>` and so on."""
        found: dict[str, float] = {}
        for role, account in self.accounts.items():
            found[f"tokens/{role}"] = account.tokens_in + account.tokens_out
            found[f"generations/{role}"] = account.generations
            found[f"seconds/{role}"] = account.seconds
            found[f"flops/{role}"] = account.flops
        return found

    def to_state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        accounts = {role: asdict(account) for role, account in self.accounts.items()}
        return {"parameters": self.parameters, "accounts": accounts}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ledger:
        """Build the ledger that `to_state` described."""
        ledger = cls(state["parameters"])
        ledger.accounts = {role: Account(**values) for role, values in state["accounts"].items()}
        return ledger
