"""Run all benchmarks: ``python benchmarks/run.py``. See README.md for how to read them."""

from __future__ import annotations

import batching
import checkpoints
import convolution
import eager
import jit
import jit_compiling
import jit_derivatives
import jit_memory
import jit_models
import jit_training
import large
import lenet_epoch
import primitives
import small
import training
import transforms

if __name__ == "__main__":
    small.imports()
    small.trees()
    small.keys()
    eager.chains()
    eager.mlp()
    eager.rosenbrock()
    batching.networks()
    batching.gradients()
    transforms.hessian_vector_products()
    transforms.jacobians()
    transforms.per_example_gradients()
    transforms.hessians()
    training.updates()
    training.mlp_epochs()
    convolution.conv2d()
    convolution.max_pool2d()
    primitives.median()
    primitives.repeated_index()
    jit.chain()
    jit.overhead()
    jit.large()
    jit.leaves()
    jit_training.steps()
    jit_models.models()
    jit_derivatives.derivatives()
    jit_compiling.operations()
    jit_compiling.tasks()
    jit_memory.large_network()
    lenet_epoch.lenet_epochs()
    large.long_chain()
    large.wide_network()
    checkpoints.archives()
