"""A run's branch as a pull request (on GitLab: a merge request).

    proposal(workspace, run, settings, ...)    what would be pushed and opened, or updated; nothing is changed
    open_request(workspace, proposal)          does it, and notes it in the run
    note(run, decisions, seal)                 the record of the run as a comment: attempts, decisions, the chain's head

A branch is pushed as it is, never forced. A run that is not completed, or completed with failures, is opened as a draft
unless a person says otherwise. Whatever is sent has its secrets masked. Whether it may be sent is not asked here: the
door asks a person, or the setting `pull_request: {ask: false}` has answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tenuto.core.pipeline.check import documents_of
from tenuto.core.status import BADLY, OVER, count_open_ends, shown_status_of
from tenuto.engine import branches
from tenuto.engine.rest import is_driven
from tenuto.errors import Refused
from tenuto.files import git, git_remote
from tenuto.forge.api import Forge, call, credentials, forge_of, one, pages
from tenuto.forge.reviews import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenuto.core.pipeline.records import Pipeline
    from tenuto.core.records.run import Json, Receipt, Run
    from tenuto.workspace.settings import Settings
    from tenuto.workspace.workspace import Workspace

_MOST_ATTEMPTS = 200  # of the record that goes into a comment


class Known(TypedDict):
    """A pull request that is open."""

    number: str
    url: str


class Proposal(TypedDict):
    run: str
    forge: str
    host: str
    project: str
    remote: str
    url: str
    branch: str
    base: str
    commit: str
    there: str  # the commit that the branch has there; empty: it is not there
    title: str
    body: str
    draft: bool
    known: Known | None  # open already: it is updated


def proposal(
    workspace: Workspace, run: Run, pipeline: Pipeline, settings: Settings, *, base: str = "", draft: bool | None = None
) -> Proposal:
    branch, wanted = run["settings"].get("branch", ""), settings.get("pull_request", {})
    if not branch or not git.exists(workspace.root, f"refs/heads/{branch}"):
        message = f"run {run['id']} has no branch of its own"
        raise Refused("no-branch", message, "begin runs with --branch or --workspace worktree", run=run["id"])
    whole = run["status"] in OVER and run["status"] not in BADLY and not count_open_ends(run)
    if draft is False and not whole:
        _refuse_half(run)
    if is_driven(workspace, run["id"]):
        message = f"run {run['id']} is under way, and what its agents write is not whole yet"
        raise Refused("run-under-way", message, f"when it rests, or after: tenuto pause {run['id']}", run=run["id"])
    forge = forge_of(workspace.root, wanted.get("remote", ""), wanted.get("forge", ""))
    named = base or wanted.get("base", "") or run["settings"].get("from_branch", "")
    target = named or _default_branch(forge, workspace)
    login = credentials(forge, workspace.root)
    known = _open(forge, workspace.root, branch)
    clean = workspace.secrets
    return {
        "run": run["id"],
        "forge": forge.kind,
        "host": forge.host,
        "project": forge.path,
        "remote": forge.remote,
        "url": forge.url,
        "branch": branch,
        "base": target,
        "commit": git.tell(workspace.root, "rev-parse", f"refs/heads/{branch}").strip(),
        "there": git_remote.commit_there(workspace.root, forge.remote, branch, login),
        "title": clean.text(" ".join(run["name"].split())[:200]),
        "body": clean.text(_body(run, pipeline)),
        "draft": wanted.get("draft", not whole) if draft is None else draft,
        "known": known,
    }


def commit_what_is_there(workspace: Workspace, run: Run, pipeline: Pipeline) -> None:
    """Of a run that rests half-way: its agents' changes, as they are committed before a wave of items."""
    is_here = run["status"] not in OVER and git.branch(workspace.root) == run["settings"]["branch"]
    if is_here and branches.has_changes(workspace, run, pipeline):
        branches.checkpoint(workspace, run, pipeline, "a pull request")
    head = git.tell(workspace.root, "rev-parse", f"refs/heads/{run['settings']['branch']}").strip()
    if head == run["settings"].get("base_commit"):
        message = f"nothing is committed on {run['settings']['branch']} yet"
        raise Refused("nothing-yet", message, "tenuto diff", run=run["id"])


def _refuse_half(run: Run) -> None:
    status = shown_status_of(run)
    raise Refused("not-whole", f"run {run['id']} is {status}", "open it as a draft: leave --ready out", run=run["id"])


def _body(run: Run, pipeline: Pipeline) -> str:
    text = branches.pull_request(run, documents_of(pipeline, run).rstrip("/"))
    text = text.partition("\n")[2].lstrip("\n")  # the heading is the title
    issue = run["settings"].get("issue") or {}
    closing = f"\nCloses {_issue_of(issue)}\n" if issue.get("number") else ""
    return f"{text}{closing}\n{MARK}{run['id']} -->\n"


def _issue_of(issue: Json) -> str:
    return str(issue.get("url") or f"#{issue['number']}")


def _default_branch(forge: Forge, workspace: Workspace) -> str:
    return str(one(forge, workspace.root, "GET", forge.project).get("default_branch") or "main")


def _forge(workspace: Workspace, of: Proposal) -> Forge:
    return forge_of(workspace.root, of["remote"], of["forge"])


def _open(forge: Forge, root: str, branch: str) -> Known | None:
    if forge.kind == "github":
        owner = forge.path.partition("/")[0]
        asked = f"{forge.project}/pulls?state=open&head={owner}:{branch}"
    else:
        asked = f"{forge.project}/merge_requests?state=opened&source_branch={branch}"
    found = call(forge, root, "GET", asked)
    first = found[0] if isinstance(found, list) and found else None
    return _known(forge, first) if isinstance(first, dict) else None


def _known(forge: Forge, found: Json) -> Known:
    if forge.kind == "github":
        return {"number": str(found["number"]), "url": str(found.get("html_url", ""))}
    return {"number": str(found["iid"]), "url": str(found.get("web_url", ""))}


def open_request(workspace: Workspace, of: Proposal, record: str = "") -> Known:
    """`record`: a comment that is written, or written anew where it is there already."""
    forge, root = _forge(workspace, of), workspace.root
    of = {**of, "commit": git.tell(root, "rev-parse", f"refs/heads/{of['branch']}").strip()}
    if of["there"] != of["commit"]:
        git_remote.push(root, of["remote"], of["branch"], credentials(forge, root))
    known = _update(forge, root, of) if of["known"] else _create(forge, root, of)
    if record:
        _comment(forge, root, known["number"], of["run"], workspace.secrets.text(record))
    kept = {"forge": forge.kind, "host": forge.host, **known, "commit": of["commit"]}
    with workspace.turn() as turn:
        before = turn.existing(of["run"])["settings"].get("pull_request") or {}
        turn.do(of["run"], {"do": "ChangeSettings", "changes": {"pull_request": {**before, **kept}}})
    return known


def _create(forge: Forge, root: str, of: Proposal) -> Known:
    if forge.kind == "github":
        body: Json = {"title": of["title"], "head": of["branch"], "base": of["base"], "body": of["body"]}
        return _known(forge, one(forge, root, "POST", f"{forge.project}/pulls", {**body, "draft": of["draft"]}))
    title = f"Draft: {of['title']}" if of["draft"] else of["title"]
    merge: Json = {"source_branch": of["branch"], "target_branch": of["base"]}
    merge |= {"title": title, "description": of["body"]}
    return _known(forge, one(forge, root, "POST", f"{forge.project}/merge_requests", merge))


def _update(forge: Forge, root: str, of: Proposal) -> Known:
    """Its text; title, draft and base are people's from here on."""
    known = of["known"]
    assert known is not None
    if forge.kind == "github":
        one(forge, root, "PATCH", f"{forge.project}/pulls/{known['number']}", {"body": of["body"]})
    else:
        one(forge, root, "PUT", f"{forge.project}/merge_requests/{known['number']}", {"description": of["body"]})
    return known


def _comment(forge: Forge, root: str, number: str, run: str, text: str) -> None:
    mark = f"{MARK}{run} record -->"
    body: Json = {"body": f"{text.rstrip()}\n\n{mark}\n"}
    github = forge.kind == "github"
    place = f"{forge.project}/{f'issues/{number}/comments' if github else f'merge_requests/{number}/notes'}"
    there = next((row for row in pages(forge, root, place) if mark in str(row.get("body", ""))), None)
    if there is None:
        one(forge, root, "POST", place, body)
    elif github:
        one(forge, root, "PATCH", f"{forge.project}/issues/comments/{there['id']}", body)
    else:
        one(forge, root, "PUT", f"{place}/{there['id']}", body)


def note(run: Run, decisions: Sequence[str], head: str, events: int) -> str:
    """Markdown. Words of agents stand in code, one line each."""
    status = shown_status_of(run)
    rows = [
        f"| {name} | {attempt['role']} | {attempt['verdict'] or attempt['status']} | {_checks(attempt['receipt'])} "
        f"| {len(attempt['receipt'].get('outputs', {}))} |"
        for name, attempt in list(run["attempts"].items())[-_MOST_ATTEMPTS:]
    ]
    parts = [f"### Record of the run `{run['id']}`: {status}", ""]
    parts += ["| attempt | role | verdict | checks that the engine ran | outputs |", "|---|---|---|---|---|", *rows, ""]
    parts += ["Decisions:", "", *(f"- {line}" for line in decisions), ""] if decisions else []
    parts.append(f"{events} events; the chain ends with `{head}` (`tenuto verify {run['id']}`).")
    return "\n".join(parts) + "\n"


def _checks(receipt: Receipt) -> str:
    found = [f"`{_code(one['command'])}` {one.get('reason') or 'passed'}" for one in receipt.get("checks", [])]
    return "; ".join(" ".join(line.split()).replace("|", "\\|") for line in found) or "none"


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:100]
