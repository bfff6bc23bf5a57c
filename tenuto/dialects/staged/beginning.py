"""A new staged task: the defaults that its users know, and what the caller says otherwise."""

from __future__ import annotations

from tenuto.core.notes import merge
from tenuto.dialects.staged import name
from tenuto.dialects.staged.document import SETTINGS
from tenuto.dialects.staged.owner import identify
from tenuto.dialects.staged.profiles import COMPLEXITY, DEFAULTS, agents, evidence_of, profile_of, schedule_of
from tenuto.encoding import dumps, loads
from tenuto.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tenuto.core.records import Json

_FOLLOWING = (
    "version", "status", "currentStage", "currentPhase", "schedule", "gates", "stages", "restartHistory", "files",
    "failure", "startedAt", "updatedAt", "stoppedAt",
)  # fmt: skip
_SEVERITIES = ("HIGH", "MEDIUM", "LOW")


def beginning(workspace: Any, at: str, run: str, task: str, fields: Json) -> tuple[Any, Json]:
    """StartRun, and the keys that we keep for others."""
    for key in fields:
        if key in _FOLLOWING:
            raise BadInput("not-by-init", f"{key} is not given to init", "it follows from task and profile", key=key)
    analysis = _analysis(fields)
    profile = profile_of(fields.get("pipelineProfile"), analysis.pop("asked"))
    schedule = schedule_of(profile, analysis["needsTests"])
    analysis["complexity"] = analysis["complexity"] or _complexity(profile)
    settings: Json = loads(dumps(DEFAULTS))
    codex = fields.get("codexAvailable", True) is not False
    owner = str(fields.get("ownerPpid", _parent()))
    settings |= {
        "pipelineProfile": profile, "codexAvailable": codex, "ownerPpid": owner, "owner": identify(owner),
        "worktree": worktree_of(workspace, at), **agents(codex), "taskAnalysis": analysis,
    }  # fmt: skip
    merge(settings, {key: v for key, v in fields.items() if key in SETTINGS and key not in ("taskAnalysis", "ownerPpid")})
    _check_policy(settings)
    start = {
        "do": "StartRun", "run": run, "name": task.partition("\n")[0][:200], "request": task,
        "pipeline": {"name": f"staged-{profile}", "hash": None},
        "dialects": {name: {"tree": workspace.tree}}, "order": "strict",
        "schedule": schedule, "evidence": evidence_of(schedule), "settings": settings,
    }  # fmt: skip
    unknown = {key: value for key, value in fields.items() if key not in SETTINGS and key != "pipelineProfile"}
    return start, unknown


def _analysis(fields: Json) -> Json:
    told = fields.get("taskAnalysis", {})
    if not isinstance(told, dict):
        raise BadInput("bad-analysis", "taskAnalysis is a JSON object", '{"complexity": "medium", "needsTests": true}')
    made = {"complexity": told.get("complexity"), "needsTests": True, "needsDocs": True, "reasoning": "", **told}
    for key in ("needsTests", "needsDocs"):
        if not isinstance(made[key], bool):
            raise BadInput("bad-analysis", f"taskAnalysis.{key} is true or false, not {made[key]!r}")
    return made | {"asked": told.get("complexity")}


def _complexity(profile: str) -> str:
    return next(word for word, chosen in COMPLEXITY.items() if chosen == profile)


def _check_policy(settings: Json) -> None:
    policy = settings["reviewPolicy"]
    if not isinstance(policy, dict) or str(policy.get("minBlockSeverity")).upper() not in _SEVERITIES:
        raise BadInput("bad-policy", "reviewPolicy.minBlockSeverity is one of " + ", ".join(_SEVERITIES))
    for limit in ("maxFixAttempts", "maxStageRestarts"):
        if type(policy.get(limit)) is not int or policy[limit] < 0:
            raise BadInput("bad-policy", f"reviewPolicy.{limit} is a whole number, not {policy.get(limit)!r}")


def _parent() -> int:
    from os import getppid

    return getppid()


def worktree_of(workspace: Any, at: str) -> Json | None:
    """In a linked work tree: which one."""
    if not workspace.tree:
        return None
    return {"path": workspace.root, "branch": _branch(workspace.root), "createdAt": at}


def _branch(root: str) -> str | None:
    try:
        with open(f"{root}/.git", encoding="utf-8") as file:
            folder = file.read().removeprefix("gitdir:").strip()
        with open(f"{folder if folder.startswith('/') else root + '/' + folder}/HEAD", encoding="utf-8") as file:
            head = file.read().strip()
    except OSError:
        return None
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else None
