"""Started by export.py: sends spans, and the figures that follow from them, over OTLP/HTTP with the SDK.

Gets a JSON list of spans on standard input (trace.py: TraceSpan). Ends with 0 when the collector has taken all of it.
The SDK reads where to, headers, certificates and resource from its own variables. It imports nothing of Tenuto.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import Any


def main() -> int:
    spans = json.load(sys.stdin)
    os.environ.setdefault("OTEL_SERVICE_NAME", "tenuto")
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", "8")
    both = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    taken = True
    if both or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        taken = _send_spans(spans)
    if both or os.environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        taken = taken and _send_figures(spans)  # figures add up: they are sent once, when all else has arrived
    return 0 if taken else 1


def _send_spans(spans: list[dict[str, Any]]) -> bool:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource, scope, sampled = Resource.create(), InstrumentationScope("tenuto"), TraceFlags(TraceFlags.SAMPLED)

    def context(span: dict[str, Any], name: str) -> SpanContext:
        return SpanContext(int(span["trace"], 16), int(span[name], 16), is_remote=False, trace_flags=sampled)

    made = [
        ReadableSpan(
            name=span["name"],
            context=context(span, "span"),
            parent=context(span, "parent") if span["parent"] else None,
            resource=resource,
            attributes={**span["attributes"], **({"error.type": span["error"]} if span["error"] else {})},
            events=[Event("check", check["attributes"], _nanoseconds(check["at"])) for check in span["checks"]],
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span["error"]) if span["error"] else Status(StatusCode.UNSET),
            start_time=_nanoseconds(span["started_at"]),
            end_time=_nanoseconds(span["ended_at"]),
            instrumentation_scope=scope,
        )
        for span in spans
    ]
    return OTLPSpanExporter().export(made) is SpanExportResult.SUCCESS


def _send_figures(spans: list[dict[str, Any]]) -> bool:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricExportResult

    # Each process tells what is new: whoever collects adds it up.
    delta = AggregationTemporality.DELTA
    reader = InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta})
    provider = MeterProvider([reader])
    meter = provider.get_meter("tenuto")
    duration = meter.create_histogram("gen_ai.client.operation.duration", "s", "how long an agent or a run took")
    tokens = meter.create_counter("tenuto.usage.tokens", "{token}", "tokens that agents reported")
    money = meter.create_counter("tenuto.usage.cost", "USD", "what agents reported that they cost")
    checks = meter.create_counter("tenuto.checks", "{check}", "checks of the project that were run")
    for span in spans:
        told = span["attributes"]
        names = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name", "tenuto.step", "tenuto.verdict")
        named = {name: told[name] for name in names if name in told}
        if "gen_ai.operation.name" in told:
            duration.record((_nanoseconds(span["ended_at"]) - _nanoseconds(span["started_at"])) / 1e9, named)
        if "tenuto.usage.tokens" in told:
            tokens.add(told["tenuto.usage.tokens"], named)
        if "tenuto.usage.micro_usd" in told:
            money.add(told["tenuto.usage.micro_usd"] / 1e6, named)
        for check in span["checks"]:
            checks.add(1, {name: check["attributes"][name] for name in ("tenuto.check", "tenuto.check.passed")})
    found = reader.get_metrics_data()
    return found is None or OTLPMetricExporter().export(found) is MetricExportResult.SUCCESS


def _nanoseconds(text: str) -> int:
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000) * 1_000_000


if __name__ == "__main__":
    sys.exit(main())
