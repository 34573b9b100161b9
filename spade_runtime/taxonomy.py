"""The skills that environments train, by kind (contract.md section 6). Nothing but names.

The first six of the games are those of the paper.
"""

from __future__ import annotations

GAME_SKILLS: tuple[str, ...] = (
    "mathematical_reasoning",
    "logical_deduction",
    "spatial_reasoning",
    "pattern_recognition",
    "optimization",
    "causal_inference",
    "strategic_planning",
    "memory_recall",
    "language_understanding",
)
TOOL_SKILLS: tuple[str, ...] = (
    "api_orchestration",
    "data_retrieval",
    "state_modification",
    "error_recovery",
    "tool_selection",
    "multi_step_workflows",
)
