"""Optimizers as pairs of pure functions, under Optax's names and with its semantics.

``init(params)`` makes a state, ``update(gradients, state, params)`` turns gradients into updates
and the state into the next one, and `apply_updates` adds the updates to the parameters. Nothing
is changed in place: parameters, gradients and states are pytrees of arrays.

The files, each of which imports only those before it:

- ``base`` (the pair of functions), ``leaves`` (kinds, dtypes, trees with holes), ``applying``;
- ``moments`` and ``clipping``, ``norms`` (of which transformations are made);
- ``combining`` (`chain`), ``masking`` (also by paths), ``partitioning``, ``conditional``,
  ``accumulation``, ``looking`` (`lookahead`): transformations of transformations;
- ``scaling`` (the learning rate), ``schedules``, ``cycles``, ``hyperparameters``;
- ``momentum``, ``decay``, ``constraining``, ``noise``: parts of many optimizers;
- ``adaptive`` (Adam), ``first_means`` and ``second_means`` (variants of it), ``squares`` (RMSProp),
  ``signs``, ``layerwise`` (LARS), ``thrifty`` (Adafactor), ``optimistic``, ``stepsizes``,
  ``sharpness``, ``schedule_free``: optimizers;
- ``monitoring``, ``states``, ``microbatching``: what is around them;
- ``lines``, ``backtracking``, ``zoom``, ``quasinewton``: line searches and L-BFGS.

Losses are in `funcgrad.nn.losses`.
"""

from funcgrad.optim.accumulation import MultiSteps, apply_every, skip_large_updates, skip_not_finite
from funcgrad.optim.adaptive import ScaleByAdamState, adam, adamw, nadam, nadamw, scale_by_adam
from funcgrad.optim.applying import apply_updates, incremental_update, periodic_update
from funcgrad.optim.backtracking import scale_by_backtracking_linesearch
from funcgrad.optim.base import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    Updates,
    identity,
    set_to_zero,
    stateless,
    stateless_with_tree_map,
    with_extra_args_support,
)
from funcgrad.optim.clipping import (
    adaptive_grad_clip,
    clip,
    clip_by_block_rms,
    clip_by_global_norm,
    global_norm,
    per_example_global_norm_clip,
    per_example_layer_norm_clip,
)
from funcgrad.optim.combining import chain, flatten, named_chain
from funcgrad.optim.conditional import apply_if_finite, conditionally_mask, conditionally_transform
from funcgrad.optim.constraining import centralize, keep_params_nonnegative, zero_nans
from funcgrad.optim.cycles import (
    cosine_onecycle_schedule,
    linear_onecycle_schedule,
    piecewise_interpolate_schedule,
    sgdr_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
    warmup_inverse_sqrt_schedule,
)
from funcgrad.optim.decay import WeightDecaySchedule, add_decayed_weights
from funcgrad.optim.first_means import adan, radam, scale_by_adan, scale_by_radam
from funcgrad.optim.hyperparameters import inject_hyperparams, inject_stateful_hyperparams
from funcgrad.optim.layerwise import fromage, lamb, lars, novograd, scale_by_novograd
from funcgrad.optim.lines import value_and_grad_from_state
from funcgrad.optim.looking import LookaheadParams, lookahead
from funcgrad.optim.masking import MaskedNode, MaskedState, masked
from funcgrad.optim.microbatching import AccumulationType, microbatch
from funcgrad.optim.moments import (
    bias_correction,
    safe_increment,
    update_infinity_moment,
    update_moment,
)
from funcgrad.optim.momentum import TraceState, ema, sgd, trace
from funcgrad.optim.monitoring import measure_with_ema, monitor, snapshot
from funcgrad.optim.noise import add_noise, noisy_sgd
from funcgrad.optim.norms import (
    normalize_by_update_norm,
    safe_norm,
    safe_root_mean_squares,
    scale_by_param_block_norm,
    scale_by_param_block_rms,
    scale_by_trust_ratio,
)
from funcgrad.optim.optimistic import (
    optimistic_adam,
    optimistic_adam_v2,
    optimistic_gradient_descent,
    scale_by_optimistic_gradient,
)
from funcgrad.optim.partitioning import freeze, multi_transform, partition, selective_transform
from funcgrad.optim.quasinewton import lbfgs, scale_by_lbfgs
from funcgrad.optim.scaling import (
    ScaleByLearningRateState,
    ScaleByScheduleState,
    scale,
    scale_by_learning_rate,
    scale_by_schedule,
    scale_gradient,
)
from funcgrad.optim.schedule_free import (
    schedule_free,
    schedule_free_adamw,
    schedule_free_eval_params,
    schedule_free_sgd,
)
from funcgrad.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    inverse_time_schedule,
    join_schedules,
    linear_schedule,
    piecewise_constant_schedule,
    polynomial_schedule,
)
from funcgrad.optim.second_means import (
    adabelief,
    adamax,
    adamaxw,
    amsgrad,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_yogi,
    yogi,
)
from funcgrad.optim.sharpness import normalize, sam
from funcgrad.optim.signs import (
    lion,
    rprop,
    scale_by_lion,
    scale_by_rprop,
    scale_by_sign,
    sign_sgd,
    signum,
)
from funcgrad.optim.squares import (
    adadelta,
    adagrad,
    rmsprop,
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
)
from funcgrad.optim.states import current_learning_rate, current_step, tree_map_params
from funcgrad.optim.stepsizes import (
    polyak_sgd,
    reduce_on_plateau,
    scale_by_distance_over_gradients,
    scale_by_polyak,
)
from funcgrad.optim.thrifty import adafactor, scale_by_factored_rms, scale_by_sm3, sm3
from funcgrad.optim.zoom import scale_by_zoom_linesearch

__all__ = [
    "AccumulationType",
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "LookaheadParams",
    "MaskedNode",
    "MaskedState",
    "MultiSteps",
    "OptState",
    "Params",
    "ScalarOrSchedule",
    "ScaleByAdamState",
    "ScaleByLearningRateState",
    "ScaleByScheduleState",
    "Schedule",
    "TraceState",
    "Updates",
    "WeightDecaySchedule",
    "adabelief",
    "adadelta",
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamaxw",
    "adamw",
    "adan",
    "adaptive_grad_clip",
    "add_decayed_weights",
    "add_noise",
    "amsgrad",
    "apply_every",
    "apply_if_finite",
    "apply_updates",
    "bias_correction",
    "centralize",
    "chain",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "conditionally_mask",
    "conditionally_transform",
    "constant_schedule",
    "cosine_decay_schedule",
    "cosine_onecycle_schedule",
    "current_learning_rate",
    "current_step",
    "ema",
    "exponential_decay",
    "flatten",
    "freeze",
    "fromage",
    "global_norm",
    "identity",
    "incremental_update",
    "inject_hyperparams",
    "inject_stateful_hyperparams",
    "inverse_time_schedule",
    "join_schedules",
    "keep_params_nonnegative",
    "lamb",
    "lars",
    "lbfgs",
    "linear_onecycle_schedule",
    "linear_schedule",
    "lion",
    "lookahead",
    "masked",
    "measure_with_ema",
    "microbatch",
    "monitor",
    "multi_transform",
    "nadam",
    "nadamw",
    "named_chain",
    "noisy_sgd",
    "normalize",
    "normalize_by_update_norm",
    "novograd",
    "optimistic_adam",
    "optimistic_adam_v2",
    "optimistic_gradient_descent",
    "partition",
    "per_example_global_norm_clip",
    "per_example_layer_norm_clip",
    "periodic_update",
    "piecewise_constant_schedule",
    "piecewise_interpolate_schedule",
    "polyak_sgd",
    "polynomial_schedule",
    "radam",
    "reduce_on_plateau",
    "rmsprop",
    "rprop",
    "safe_increment",
    "safe_norm",
    "safe_root_mean_squares",
    "sam",
    "scale",
    "scale_by_adadelta",
    "scale_by_adam",
    "scale_by_adamax",
    "scale_by_adan",
    "scale_by_amsgrad",
    "scale_by_backtracking_linesearch",
    "scale_by_belief",
    "scale_by_distance_over_gradients",
    "scale_by_factored_rms",
    "scale_by_lbfgs",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_novograd",
    "scale_by_optimistic_gradient",
    "scale_by_param_block_norm",
    "scale_by_param_block_rms",
    "scale_by_polyak",
    "scale_by_radam",
    "scale_by_rms",
    "scale_by_rprop",
    "scale_by_rss",
    "scale_by_schedule",
    "scale_by_sign",
    "scale_by_sm3",
    "scale_by_stddev",
    "scale_by_trust_ratio",
    "scale_by_yogi",
    "scale_by_zoom_linesearch",
    "scale_gradient",
    "schedule_free",
    "schedule_free_adamw",
    "schedule_free_eval_params",
    "schedule_free_sgd",
    "selective_transform",
    "set_to_zero",
    "sgd",
    "sgdr_schedule",
    "sign_sgd",
    "signum",
    "skip_large_updates",
    "skip_not_finite",
    "sm3",
    "snapshot",
    "stateless",
    "stateless_with_tree_map",
    "trace",
    "tree_map_params",
    "update_infinity_moment",
    "update_moment",
    "value_and_grad_from_state",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
    "warmup_inverse_sqrt_schedule",
    "with_extra_args_support",
    "yogi",
    "zero_nans",
]
