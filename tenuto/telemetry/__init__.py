"""Runs as traces and metrics of OpenTelemetry."""
