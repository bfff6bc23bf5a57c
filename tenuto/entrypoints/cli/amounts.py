"""Amounts as people read them."""

from __future__ import annotations

from typing import Any


def span(milliseconds: float) -> str:
    """45s, 5m 07s, 1h 02m 05s; below ten seconds 3.2s."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(int(milliseconds + 500) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m {seconds:02d}s"
    return f"{minutes}m {seconds:02d}s" if minutes else f"{seconds}s"


def money(micro_usd: float) -> str:
    dollars = micro_usd / 1_000_000
    return f"${dollars:,.2f}" if dollars >= 0.01 or not dollars else f"${dollars:.4f}"


def number(amount: float) -> str:
    return f"{round(amount):,}"


def told(unit: str, amount: float) -> str:
    """12,000 tokens; $1.20; 5m 07s; 26 attempts"""
    if unit == "micro_usd":
        return money(amount)
    if unit in ("ms", "wall_clock"):
        return span(amount if unit == "ms" else amount * 1000)
    return f"{number(amount)} {unit}" if amount != 1 or not unit.endswith("s") else f"1 {unit[:-1]}"


def all_told(amounts: dict[str, Any]) -> str:
    return ", ".join(told(unit, amount) for unit, amount in amounts.items() if isinstance(amount, (int, float)) and amount)
