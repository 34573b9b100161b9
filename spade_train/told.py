"""Figures as people read them, rounded alike on the terminal and in the report."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import floor


def share(value: float) -> int:
    """Return a share as a whole number of per cent; halves go up, as they do in the report's page.

    >>> share(0.125), share(0.12)
    (13, 12)
    """
    # Five digits are what the page gets, so both round the same number.
    return floor(100 * float(f"{value:.5g}") + 0.5)


def percent(value: float) -> str:
    """Return a share with its unit.

    >>> percent(0.125)
    '13 %'
    """
    return f"{share(value)} %"


def fixed(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals; halves go away from zero, as `toFixed` has it.

    >>> fixed(0.625), fixed(-0.625), fixed(-0.001)
    ('0.63', '-0.63', '0.00')
    """
    exact = Decimal(float(f"{value:.5g}")).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return str(exact if exact else abs(exact))


def signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign.

    >>> signed(0.5), signed(-0.25)
    ('+0.50', '-0.25')
    """
    text = fixed(value, digits)
    return text if text.startswith("-") else f"+{text}"
