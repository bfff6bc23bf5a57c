"""Programs tell clock times in the machine's zone: here it is two hours ahead of UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def zone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Etc/GMT-2")
        time.tzset()
        yield
    time.tzset()
