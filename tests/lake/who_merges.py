"""Who merges the changes of a story of the lake?"""

from __future__ import annotations

import pytest

BY_SPARK = pytest.param("spark", marks=pytest.mark.spark)
BY_BOTH = ("auto", BY_SPARK)
"""``lake.merge``, for the fixture ``open_lake``: this process, and Spark."""
