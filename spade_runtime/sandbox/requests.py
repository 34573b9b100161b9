"""The few bytes that the trainer and the zygote exchange."""

from __future__ import annotations

import struct

REQUEST = struct.Struct("<cII")
"""A letter and two numbers: what a child may use in MiB and its uid, or its pid and nothing."""
STATUS = struct.Struct("<cIi")
"""The letter again, the child's pid in its own namespace, and a wait status or errno."""

SPAWN = b"S"
REPORT = b"R"
FORGET = b"K"

CONFIG_BYTES_MAX = 65536
"""The first message, from the trainer: one JSON object."""
