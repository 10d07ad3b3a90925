"""Optimizers to run side by side, with funcgrad and with Optax.

`made(O)` builds every case from a module with Optax's names. Run as a program, with Optax and JAX
installed, this writes what Optax 0.2.8 computes in float64 to `optax.json`; the tests compare
funcgrad's steps with that file.
"""

import functools
import inspect
import json
import warnings
from pathlib import Path

import numpy as np

VALUES = Path(__file__).parent / "optax.json"

PARAMS = {
    "b": [np.array([0.25, -1.5]), np.array(2.0)],
    "w": np.array([[1.0, -2.0, 0.0], [0.5, 3.0, 1e-3]]),
}
# Signs that change and signs that stay, zeros, large and small ones.
GRADIENTS = [
    {
        "b": [np.array([k * k - 3.0, 1e-3]), np.array(-0.5)],
        "w": np.array([[0.1 * k, -1.0, 0.0], [2.0, (-1.0) ** k, 30.0 if k == 2 else 0.3]]),
    }
    for k in range(1, 6)
]
MASK = {"b": False, "w": True}
LABELS = {"b": ["slow", "fast"], "w": "fast"}
VALUES_GIVEN = [3.0, 2.5, 2.5, 0.001, 2.4]


def falling(count):
    return 0.1 / (1 + 0.5 * count)


def made(O):  # noqa: E741 - as in the tests
    """Return the cases that are given gradients, by name."""
    rate, contrib = O.scale_by_learning_rate, getattr(O, "contrib", O)
    one = {
        "adabelief": O.adabelief(0.1),
        "adabelief-all": O.adabelief(0.1, b1=0.8, b2=0.9, eps=1e-3, eps_root=1e-4, nesterov=True),
        "adadelta": O.adadelta(1.0),
        "adadelta-all": O.adadelta(0.5, 0.8, 1e-3, weight_decay=0.1, weight_decay_mask=MASK),
        "adadelta-none": O.adadelta(),
        "adagrad": O.adagrad(0.1),
        "adagrad-zero": O.adagrad(falling, initial_accumulator_value=0.0, eps=1e-3),
        "adam": O.adam(0.1),
        "adam-all": O.adam(0.1, b1=0.8, b2=0.9, eps=1e-3, eps_root=1e-4),
        "adamax": O.adamax(0.1),
        "adamax-all": O.adamax(falling, 0.8, 0.9, 1e-3),
        "adamaxw": O.adamaxw(0.1, weight_decay=0.1, mask=MASK),
        "adamw": O.adamw(0.1, weight_decay=0.01),
        "adamw-schedule": O.adamw(0.1, weight_decay=lambda count: 0.1 / (1 + count)),
        "adan": O.adan(0.1),
        "adan-all": O.adan(0.1, 0.9, 0.8, 0.7, 1e-3, 1e-2, 0.1, MASK),
        "adaptive_grad_clip": O.adaptive_grad_clip(0.1),
        "adaptive_grad_clip-axis": O.chain(
            O.masked(O.adaptive_grad_clip(0.1, eps=0.1, axis=1), MASK), O.scale(-0.1)
        ),
        "add_decayed_weights": O.add_decayed_weights(0.1, MASK),
        "amsgrad": O.amsgrad(0.1),
        "amsgrad-all": O.amsgrad(
            0.1, 0.8, 0.9, 1e-3, 1e-4, bias_correction_mu=False, bias_correction_nu=False
        ),
        "apply_every": O.chain(O.apply_every(2), O.scale(-0.1)),
        "apply_if_finite": O.apply_if_finite(O.adam(0.1), 2),
        "centralize": O.centralize(),
        "chain": O.chain(
            O.clip_by_global_norm(1.0), O.add_decayed_weights(0.1), O.trace(0.9), O.scale(-0.1)
        ),
        "clip": O.clip(0.5),
        "clip_by_block_rms": O.clip_by_block_rms(1.0),
        "clip_by_global_norm": O.clip_by_global_norm(3.0),
        "conditionally_mask": O.conditionally_mask(O.adam(0.1), lambda step: step % 2 == 0),
        "conditionally_transform": O.chain(
            O.conditionally_transform(O.scale_by_adam(), lambda step: step > 1), rate(0.1)
        ),
        "ema": O.ema(0.9),
        "ema-biased": O.ema(0.8, debias=False),
        "factored_rms": O.scale_by_factored_rms(
            min_dim_size_to_factor=2, epsilon=1e-3, decay_rate_fn=lambda count, rate: 0.5 * rate
        ),
        "factored_rms-not": O.scale_by_factored_rms(
            factored=False, decay_rate_fn=lambda count, rate: 0.5 * rate
        ),
        "flatten": O.flatten(O.chain(O.clip_by_global_norm(1.0), O.adam(0.1))),
        "freeze": O.chain(O.sgd(0.1), O.freeze(MASK)),
        "fromage": O.fromage(0.1),
        "fromage-schedule": O.fromage(falling, min_norm=0.5),
        "identity": O.identity(),
        "inject_hyperparams": O.inject_hyperparams(O.adam)(falling, b1=0.8),
        "keep_params_nonnegative": O.chain(O.sgd(0.5), O.keep_params_nonnegative()),
        "lamb": O.lamb(0.1),
        "lamb-all": O.lamb(0.1, 0.8, 0.9, 1e-3, 1e-4, weight_decay=0.1, mask=MASK),
        "lars": O.lars(0.1),
        "lars-all": O.lars(
            0.1,
            weight_decay=0.1,
            weight_decay_mask=MASK,
            trust_coefficient=0.5,
            eps=0.1,
            trust_ratio_mask=MASK,
            momentum=0.8,
            nesterov=True,
        ),
        "lbfgs-without-search": O.lbfgs(0.1, memory_size=3, linesearch=None),
        "lbfgs-unscaled": O.lbfgs(0.01, scale_init_precond=False, linesearch=None),
        "lion": O.lion(0.1),
        "lion-smooth": O.scale_by_lion(0.8, 0.9, mode="smooth", smooth_beta=0.5),
        "lion-refined": O.scale_by_lion(0.8, 0.9, mode="refined"),
        "masked": O.masked(O.adam(0.1), MASK),
        "momentum": O.sgd(0.1, momentum=0.9),
        "multi_steps": O.MultiSteps(
            O.adam(0.1), 2, **({} if _ours(O) else {"accumulator_dtype": np.float64})
        ).gradient_transformation(),
        "multi_steps-sum": O.MultiSteps(
            O.sgd(0.1),
            lambda step: step + 1,
            use_grad_mean=False,
            **({} if _ours(O) else {"accumulator_dtype": np.float64}),
        ).gradient_transformation(),
        "multi_steps-skip": O.MultiSteps(
            O.sgd(0.1),
            2,
            should_skip_update_fn=functools.partial(O.skip_large_updates, max_squared_norm=100.0),
            **({} if _ours(O) else {"accumulator_dtype": np.float64}),
        ).gradient_transformation(),
        "multi_transform": O.multi_transform(
            {"fast": O.adam(0.1), "slow": O.sgd(0.01, momentum=0.5)}, LABELS
        ),
        "nadam": O.nadam(0.1),
        "nadamw": O.nadamw(0.1, weight_decay=0.1, mask=MASK),
        "named_chain": O.named_chain(("first", O.clip(0.5)), ("second", O.adam(0.1))),
        "nesterov": O.sgd(0.1, momentum=0.9, nesterov=True),
        "normalize_by_update_norm": O.normalize_by_update_norm(2.0, 1e-2),
        "novograd": O.novograd(0.1),
        "novograd-all": O.novograd(0.1, 0.8, 0.5, 1e-3, 1e-4, weight_decay=0.1),
        "optimistic_adam": _quietly(O.optimistic_adam)(0.1, optimism=0.2),
        "optimistic_adam_v2": O.optimistic_adam_v2(falling, alpha=0.5, beta=0.7),
        "optimistic_gradient_descent": O.optimistic_gradient_descent(0.1, alpha=0.5, beta=0.7),
        "partition": O.partition({"fast": O.lion(0.1), "slow": O.set_to_zero()}, LABELS),
        "radam": O.radam(0.1),
        "radam-late": O.radam(0.1, b2=0.9, threshold=4.0),
        "radam-all": O.radam(0.1, 0.8, 0.9, 1e-3, 1e-4, threshold=4.5, nesterov=True),
        "rmsprop": O.rmsprop(0.1),
        "rmsprop-all": O.rmsprop(
            0.1, 0.8, 1e-3, 0.5, eps_in_sqrt=False, momentum=0.9, nesterov=True
        ),
        "rmsprop-centered": O.rmsprop(0.1, eps=1e-3, centered=True, momentum=0.5),
        "rmsprop-centered-corrected": O.rmsprop(
            0.1, eps=1e-3, centered=True, eps_in_sqrt=False, initial_scale=0.1, bias_correction=True
        ),
        "rmsprop-corrected": O.rmsprop(0.1, bias_correction=True),
        "rprop": O.rprop(0.1),
        "sam": contrib.sam(O.adam(0.1), O.chain(contrib.normalize(), O.sgd(0.05))),
        "sam-three": contrib.sam(
            O.sgd(0.1, momentum=0.9),
            O.sgd(0.05, momentum=0.5),
            sync_period=3,
            reset_state=False,
        ),
        "schedule_free": contrib.schedule_free(
            O.rmsprop(falling), falling, b1=0.8, weight_lr_power=1.5
        ),
        "schedule_free_adamw (float32)": contrib.schedule_free_adamw(0.1, 3, weight_decay=0.1),
        "schedule_free_sgd": contrib.schedule_free_sgd(0.1, weight_decay=0.1),
        "rprop-all": O.rprop(0.1, 0.3, 1.5, 0.05, 0.2),
        "scale": O.scale(-0.5),
        "scale_by_distance_over_gradients": O.chain(
            O.masked(
                O.scale_by_distance_over_gradients(0.1, 1e-4, np.float64, 0.5),
                {"b": [True, False], "w": True},  # a parameter without axes gets one in Optax
            ),
            O.scale(-1.0),
        ),
        "scale_by_param_block_norm": O.chain(O.scale_by_param_block_norm(0.1), O.scale(-0.1)),
        "scale_by_param_block_rms": O.chain(O.scale_by_param_block_rms(), O.scale(-0.1)),
        "scale_by_schedule": O.scale_by_schedule(lambda count: -0.1 * (count + 1)),
        "scale_by_trust_ratio": O.scale_by_trust_ratio(0.1, 0.5, 0.01),
        "scale_by_yogi": O.scale_by_yogi(0.8, 0.9, 1e-2, 1e-4, 1e-3),
        "selective_transform": O.selective_transform(O.adam(0.1), freeze_mask=MASK),
        "set_to_zero": O.set_to_zero(),
        "sgd": O.sgd(0.1),
        "sgd-schedule": O.sgd(falling, momentum=0.5),
        "sign_sgd": O.sign_sgd(0.1),
        "signum": O.signum(0.1, 0.8),
        "sm3": O.chain(O.masked(O.sm3(0.1), {"b": [True, False], "w": True})),
        "sm3-b2": O.chain(
            O.masked(O.scale_by_sm3(0.8, 0.9, 1e-3), {"b": [True, False], "w": True})
        ),
        "stateless": O.stateless(lambda updates, params: params),
        "yogi": O.yogi(0.1),
        "zero_nans": O.zero_nans(),
    }
    # Optax rounds the decay of Adafactor to float32.
    one["adafactor (float32)"] = O.adafactor(0.1, min_dim_size_to_factor=2)
    one["adafactor-all (float32)"] = O.adafactor(
        falling,
        2,
        0.7,
        decay_offset=-1,
        multiply_by_parameter_scale=False,
        clipping_threshold=None,
        momentum=0.9,
        weight_decay_rate=0.01,
        eps=1e-3,
        weight_decay_mask=MASK,
    )
    one["momentum (float32)"] = O.sgd(
        0.1, momentum=0.9, nesterov=True, accumulator_dtype=np.float32
    )
    one["adam (float32)"] = O.adam(0.1, mu_dtype=np.float32)
    return one


def made_with_value(O):  # noqa: E741
    """Return the cases that are given a value, too."""
    plateau = getattr(O, "contrib", O).reduce_on_plateau
    return {
        "polyak_sgd": O.polyak_sgd(1.0),
        "polyak_sgd-all": O.polyak_sgd(0.5, falling, f_min=1.0, eps=0.1, variant="sps+"),
        "reduce_on_plateau": O.chain(O.sgd(0.1), plateau(0.5, patience=1, rtol=0.1, cooldown=1)),
        "reduce_on_plateau-mean": plateau(0.5, 1, 0.1, 0.1, accumulation_size=2, min_scale=0.7),
    }


def made_to_search(O):  # noqa: E741
    """Return the cases that search along a line, for a function."""
    return {
        "backtracking": O.chain(O.sgd(1.0), O.scale_by_backtracking_linesearch(15)),
        "backtracking-all": O.chain(
            O.adam(0.3),
            O.scale_by_backtracking_linesearch(
                3, 0.5, 0.5, 2.0, max_learning_rate=4.0, atol=0.1, rtol=0.01, store_grad=True
            ),
        ),
        "zoom": O.chain(O.sgd(1.0), O.scale_by_zoom_linesearch(20)),
        "zoom-all": O.chain(
            O.sgd(0.01),
            O.scale_by_zoom_linesearch(
                20,
                max_learning_rate=3.0,
                tol=1e-3,
                increase_factor=1.5,
                slope_rtol=0.1,
                curv_rtol=0.2,
                approx_dec_rtol=None,
                stepsize_precision=1e-3,
                initial_guess_strategy="one",
            ),
        ),
        "zoom-short": O.chain(O.sgd(0.01), O.scale_by_zoom_linesearch(2)),
        "lbfgs": O.lbfgs(),
        "lbfgs-memory": O.lbfgs(0.5, memory_size=2, linesearch=O.scale_by_zoom_linesearch(5)),
        "lbfgs-backtracking": O.lbfgs(
            linesearch=O.scale_by_backtracking_linesearch(10, store_grad=True)
        ),
    }


def hills(params, xp):
    """Return a value with curved valleys: Rosenbrock's function and a log."""
    w, (b, c) = params["w"], params["b"]
    first = xp.sum(10.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2)
    return first + xp.sum(xp.log(1.0 + (b - c) ** 2)) + 0.1 * c**2


def schedules(O):  # noqa: E741
    """Return schedules by name."""
    return {
        "constant": O.constant_schedule(0.3),
        "cosine_decay": O.cosine_decay_schedule(2.0, 10),
        "cosine_decay-all": O.cosine_decay_schedule(2.0, 10, 0.1, 1.5),
        "cosine_onecycle": O.cosine_onecycle_schedule(20, 2.0),
        "cosine_onecycle-all": O.cosine_onecycle_schedule(20, 2.0, 0.5, 10.0, 100.0),
        "exponential_decay": O.exponential_decay(2.0, 5, 0.5),
        "exponential_decay-all": O.exponential_decay(2.0, 5, 0.5, 3, True, 0.4),
        "exponential_growth": O.exponential_decay(2.0, 5, 1.5, end_value=3.0),
        "join": O.join_schedules(
            [O.linear_schedule(0.0, 1.0, 4), O.constant_schedule(0.5), lambda count: count], [4, 9]
        ),
        "linear": O.linear_schedule(1.0, 0.1, 7, 3),
        "linear_onecycle": O.linear_onecycle_schedule(20, 2.0),
        "linear_onecycle-all": O.linear_onecycle_schedule(20, 2.0, 0.5, 0.8, 10.0, 100.0),
        "piecewise_constant": O.piecewise_constant_schedule(2.0, {5: 0.5, 10: 0.1}),
        "piecewise_interpolate": O.piecewise_interpolate_schedule("linear", 2.0, {5: 0.5, 9: 3.0}),
        "piecewise_interpolate-cosine": O.piecewise_interpolate_schedule(
            "cosine", 2.0, {5: 0.5, 9: 3.0}
        ),
        "piecewise_interpolate-none": O.piecewise_interpolate_schedule("linear", 2.0),
        "polynomial": O.polynomial_schedule(1.0, 0.1, 2.5, 7, 3),
        "polynomial-none": O.polynomial_schedule(1.0, 0.1, 2.5, 0),
        "sgdr": O.sgdr_schedule(
            [
                {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 6},
                {
                    "init_value": 0.1,
                    "peak_value": 0.5,
                    "warmup_steps": 3,
                    "decay_steps": 9,
                    "end_value": 0.05,
                    "exponent": 2.0,
                },
            ]
        ),
        "warmup_constant": O.warmup_constant_schedule(0.1, 1.0, 5),
        "warmup_cosine_decay": O.warmup_cosine_decay_schedule(0.1, 1.0, 5, 15, 0.2, 1.5),
        "warmup_exponential_decay": O.warmup_exponential_decay_schedule(
            0.1, 1.0, 5, 4, 0.5, 2, True, 0.3
        ),
    }


COUNTS = range(25)


_MARKS = ["/", "", "*", "keyword ", "**"]


def signature(fun):
    """Return the parameters of a function as strings, without annotations."""
    found = []
    for parameter in inspect.signature(fun).parameters.values():
        default = parameter.default
        if default is inspect.Parameter.empty:
            text = ""
        elif type(default) in (bool, int, float, str, tuple, type(None)):
            text = f"={default!r}"
        else:
            text = "=..."
        found.append(_MARKS[parameter.kind] + parameter.name + text)
    return found


def _ours(O):  # noqa: E741
    return O.__name__.startswith("funcgrad")


def _quietly(fun):
    @functools.wraps(fun)
    def quiet(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fun(*args, **kwargs)

    return quiet


def _main():
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import optax

    assert optax.__version__ == "0.2.8"

    def leaves(tree):
        return [np.asarray(leaf, np.float64).tolist() for leaf in jax.tree.leaves(tree)]

    def run(optimizer, arguments):
        params = jax.tree.map(jnp.asarray, PARAMS)
        state, steps = optimizer.init(params), []
        for k in range(5):
            gradient, extra = arguments(k, params)
            updates, state = optimizer.update(gradient, state, params, **extra)
            params = optax.apply_updates(params, updates)
            steps.append(leaves(updates))
        return steps

    def given(k, params):
        return jax.tree.map(jnp.asarray, GRADIENTS[k]), {}

    def with_value(k, params):
        return given(k, params)[0], {"value": VALUES_GIVEN[k]}

    def searching(k, params):
        def value_fn(params):
            return hills(params, jnp)

        value, grad = jax.value_and_grad(value_fn)(params)
        return grad, {"value": value, "grad": grad, "value_fn": value_fn}

    groups = [(made, given), (made_with_value, with_value), (made_to_search, searching)]
    values = {
        make.__name__: {name: run(tx, how) for name, tx in make(optax).items()}
        for make, how in groups
    }
    values["schedules"] = {
        name: [float(schedule(count)) for count in COUNTS]
        for name, schedule in schedules(optax).items()
    }
    names = (Path(__file__).parent / "optax.txt").read_text().split()
    values["signatures"] = {name: signature(getattr(optax, name)) for name in names}
    lines = [
        f"{json.dumps(group)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
        + "\n}"
        for group, cases in values.items()
    ]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
