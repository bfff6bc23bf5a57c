"""A call in a new Python process.

One that forks must have a single thread, and the process that runs the tests has more: one that watches for tests that
hang, and one that hears which test is next.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def in_fresh_process(act: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Answer:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(act, *given, **named).result()
