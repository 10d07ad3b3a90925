"""Optimizers as pairs of pure functions, under Optax's names and with its semantics.

``init(params)`` makes a state, ``update(gradients, state, params)`` turns gradients into updates
and the state into the next one, and `apply_updates` adds the updates to the parameters. Nothing
is changed in place: parameters, gradients and states are pytrees of arrays.

The files: ``base`` (the pair, applying updates, matching trees), ``combining`` (`chain`, `masked`),
``scaling`` (constant factors and learning rates), ``clipping``, ``decay`` (of weights),
``momentum`` (`trace`, `sgd`), ``adaptive`` (`adam`, `adamw`).
"""

from funcgrad.optim.adaptive import ScaleByAdamState, adam, adamw, scale_by_adam
from funcgrad.optim.base import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    Updates,
    apply_updates,
    identity,
    with_extra_args_support,
)
from funcgrad.optim.clipping import clip, clip_by_global_norm, global_norm
from funcgrad.optim.combining import MaskedNode, MaskedState, chain, masked
from funcgrad.optim.decay import WeightDecaySchedule, add_decayed_weights
from funcgrad.optim.momentum import TraceState, sgd, trace
from funcgrad.optim.scaling import (
    ScaleByScheduleState,
    scale,
    scale_by_learning_rate,
    scale_by_schedule,
)

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "MaskedNode",
    "MaskedState",
    "OptState",
    "Params",
    "ScalarOrSchedule",
    "ScaleByAdamState",
    "ScaleByScheduleState",
    "Schedule",
    "TraceState",
    "Updates",
    "WeightDecaySchedule",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_global_norm",
    "global_norm",
    "identity",
    "masked",
    "scale",
    "scale_by_adam",
    "scale_by_learning_rate",
    "scale_by_schedule",
    "sgd",
    "trace",
    "with_extra_args_support",
]
