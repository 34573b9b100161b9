"""A run as one HTML file: its story, its curves, its environments and how they were played."""

from __future__ import annotations

from spade_train.report.page import render, write_report
from spade_train.report.records import read_run

__all__ = ["read_run", "render", "write_report"]
