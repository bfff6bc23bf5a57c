"""Runs as traces and metrics: received over OTLP/HTTP on this machine, and read with the protocol's own messages."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.trusting import trust
from tests.unit.engine.conftest import SMALL

Say = Callable[..., Any]
GATED = SMALL.replace("name: small", "name: gated") + "  - {id: agreed, gate: {prompt: Good so?}}\n"


class Collector:
    def __init__(self) -> None:
        self.status = 200
        self.requests: list[tuple[str, bytes]] = []
        self.address = ""

    def spans(self) -> list[Any]:
        found = []
        for path, body in self.requests:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    def figures(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for path, body in self.requests:
            if path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
                        points = metric.sum.data_points or metric.histogram.data_points
                        found.setdefault(metric.name, []).extend(points)
        return found


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if made.status == 200:
                made.requests.append((self.path, body))
            self.send_response(made.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Takes)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield made
    server.shutdown()
    server.server_close()


def told(one: Any) -> dict[str, Any]:
    values = {}
    for pair in one.attributes:
        kind = pair.value.WhichOneof("value")
        values[pair.key] = getattr(pair.value, kind)
    return values


def test_a_run_arrives_as_one_trace_of_its_steps_and_attempts(say: Say, script: Any, collector: Collector) -> None:
    assert say("run", "Add it", "--pipeline", "small", "--agent", script()).status == 0
    spans = collector.spans()
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans) == 6 and len({span.trace_id for span in spans}) == 1
    (top,) = [span for span in spans if not span.parent_span_id]
    assert top.name == "invoke_workflow small" and told(top)["tenuto.status"] == "completed"
    steps = [span for span in spans if span.parent_span_id == top.span_id]
    assert sorted(span.name for span in steps) == ["step look", "step write"]
    agents = [span for span in spans if told(span).get("gen_ai.operation.name") == "invoke_agent"]
    assert sorted(
        (told(span)["gen_ai.agent.name"], told(by_id[span.parent_span_id])["tenuto.step"]) for span in agents
    ) == [("designer", "write"), ("researcher", "look"), ("researcher", "look")]
    assert all(told(span)["gen_ai.provider.name"] == "scripted" for span in agents)
    assert all(top.start_time_unix_nano <= span.start_time_unix_nano for span in spans)
    assert all(span.end_time_unix_nano <= top.end_time_unix_nano for span in spans)
    durations = collector.figures()["gen_ai.client.operation.duration"]
    assert sum(point.count for point in durations) == 4


def test_what_arrived_is_not_sent_again_when_the_run_goes_on(say: Say, script: Any, collector: Collector) -> None:
    """As it waits, what has ended is sent; the run itself when it is over."""
    (Path(".tenuto/pipelines") / "gated.yaml").write_text(GATED)
    agent = script()
    assert say("run", "Add it", "--pipeline", "gated", "--agent", agent).status == 5
    first = {span.span_id for span in collector.spans()}
    assert len(first) == 5
    say("approve")
    assert say("run", "--agent", agent).status == 0
    everything = [span.span_id for span in collector.spans()]
    assert len(everything) == len(set(everything)) and first < set(everything)
    assert sum(point.count for point in collector.figures()["gen_ai.client.operation.duration"]) == 4


def test_an_agent_gets_the_context_of_its_own_span(say: Say, repository: Path, collector: Collector) -> None:
    program = repository.parent / "agent"
    program.write_text(
        '#!/bin/sh\necho "$TRACEPARENT" > "$(dirname "$PWD")/$TENUTO_ROLE"\n'
        'for file in $TENUTO_OUTPUTS; do mkdir -p "$(dirname "$file")"; echo x > "$file"; done\necho DONE: ok\n'
    )
    program.chmod(0o755)
    agent = f"command:{program}"
    say("run", "Add it", "--pipeline", "small", "--agent", agent)
    (designer,) = [span for span in collector.spans() if told(span).get("gen_ai.agent.name") == "designer"]
    heard = (repository.parent / "designer").read_text().strip()
    assert heard == f"00-{designer.trace_id.hex()}-{designer.span_id.hex()}-01"


def test_without_a_collector_nothing_is_handed_out_or_sent(
    say: Say, script: Any, repository: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for switch in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}):
        for name, value in switch.items():
            monkeypatch.setenv(name, value)
        done = say("run", "Add it", "--pipeline", "small", "--agent", "command:sh -c 'echo \"ERROR: [$TRACEPARENT]\"'")
        assert "[]" in done.out + done.err and "telemetry" not in done.err
        monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    assert collector.requests == []


def test_checks_of_the_project_are_events_and_a_figure(
    say: Say, script: Any, repository: Path, collector: Collector
) -> None:
    (repository / ".tenuto/config.yaml").write_text("checks: {tests: exit 3}\n")
    (repository / ".tenuto/pipelines/checked.yaml").write_text(
        "name: checked\ndocuments: docs/{slug}\nsteps:\n"
        "  - {id: make, agent: {role: designer, out: design.md}, checks: [tests], retry: {ERROR: 1}}\n"
    )
    trust(repository)
    assert say("run", "Add it", "--pipeline", "checked", "--agent", script()).status == 1
    attempts = [span for span in collector.spans() if told(span).get("gen_ai.operation.name") == "invoke_agent"]
    events = [told(event) for span in attempts for event in span.events]
    assert events and all((one["tenuto.check"], one["process.exit.code"]) == ("tests", 3) for one in events)
    assert not any(one["tenuto.check.passed"] for one in events)
    assert sum(point.as_int for point in collector.figures()["tenuto.checks"]) == len(events)


def test_a_collector_that_refuses_is_said_and_what_was_lost_goes_along_later(
    say: Say, script: Any, collector: Collector
) -> None:
    (Path(".tenuto/pipelines") / "gated.yaml").write_text(GATED)
    agent = script()
    collector.status = 400
    done = say("run", "Add it", "--pipeline", "gated", "--agent", agent)
    assert done.status == 5 and "telemetry was not sent" in done.err and collector.requests == []
    collector.status = 200
    say("approve")
    assert say("run", "--agent", agent).status == 0
    names = [span.name for span in collector.spans()]
    assert names.count("invoke_agent researcher") == 2 and names.count("invoke_workflow gated") == 1


def test_without_the_extra_the_way_to_it_is_said(
    say: Say, script: Any, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if "site-packages" not in one])
    done = say("run", "Add it", "--pipeline", "small", "--agent", script())
    assert done.status == 0 and "pip install 'tenuto[otel]'" in done.err
