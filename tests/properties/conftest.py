"""How many programs the properties are checked on: few, and always the same, in a usual run.

``HYPOTHESIS_PROFILE=long pytest tests/properties`` draws thousands of new ones.
"""

import os

from hypothesis import HealthCheck, settings

collect_ignore = ["operations.py", "programs.py"]

# Programs are drawn by running them, which hypothesis takes for slow.
UNUSUAL = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=25,
    suppress_health_check=UNUSUAL,
)
settings.register_profile(
    "long",
    settings.get_profile("ci"),
    derandomize=False,
    max_examples=5000,
    print_blob=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
