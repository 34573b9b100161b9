"""What a run's records say: pure functions over its designs, windows and episodes."""

from __future__ import annotations

from spade_train.analysis.band import BAND, in_band, learnable_band_share
from spade_train.analysis.diversity import mean_pairwise_distance, vendi_score
from spade_train.analysis.funnel import Funnel, acceptance_funnel
from spade_train.analysis.intervals import bootstrap_interval, t_interval, wilson_interval
from spade_train.analysis.levers import levers

__all__ = [
    "BAND",
    "Funnel",
    "acceptance_funnel",
    "bootstrap_interval",
    "in_band",
    "learnable_band_share",
    "levers",
    "mean_pairwise_distance",
    "t_interval",
    "vendi_score",
    "wilson_interval",
]
