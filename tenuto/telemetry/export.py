"""Send what has ended in a run to the collector that the environment names, when the run rests.

    why = export(spans, path)           "" where it went well, or nothing was to be sent
    more = context(environment, run, attempt)       TRACEPARENT for an agent, where somebody collects

The collector is named as for every program that speaks OpenTelemetry: OTEL_EXPORTER_OTLP_ENDPOINT and its like. Nothing
in a repository can name one. A program of its own sends (through_otlp.py), so that neither the engine nor a hook loads
the SDK, and nobody is waited for longer than SECONDS. `path` remembers which spans have arrived: the others go along
the next time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.telemetry.trace import context_of

if TYPE_CHECKING:
    from tenuto.core.records.run import Run
    from tenuto.telemetry.trace import TraceSpan

SECONDS = 20
_NAMED_BY = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
_PROGRAM = str(Path(__file__).with_name("through_otlp.py"))


def is_collected(environment: Mapping[str, str]) -> bool:
    switched_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not switched_off and any(environment.get(name) for name in _NAMED_BY)


def context(environment: Mapping[str, str], run: Run, attempt: str) -> dict[str, str]:
    return {"TRACEPARENT": context_of(run, attempt)} if is_collected(environment) else {}


def export(spans: Sequence[TraceSpan], path: str) -> str:
    sent = _read(path)
    new = [span for span in spans if span["span"] not in sent]
    if not new:
        return ""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return "OpenTelemetry is not installed: pip install 'tenuto[otel]'"
    command = [sys.executable, "-I", _PROGRAM]
    try:
        done = subprocess.run(
            command, input=json.dumps(new).encode(), cwd="/", capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the collector took longer than {SECONDS} seconds"
    except OSError as error:
        return str(error)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        return f"the collector has not taken it{f': {said}' if said else ''}"
    return _keep(path, [*sent, *(span["span"] for span in new)])


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return []  # what is sent twice is the same span


def _keep(path: str, sent: Sequence[str]) -> str:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write("\n".join(sent))
        os.replace(f"{path}.new", path)
    except OSError as error:
        return f"which spans have arrived cannot be kept: {error}"
    return ""
