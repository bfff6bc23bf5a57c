"""What a checked pipeline is: the records that `pipeline.check` yields.

Imported under TYPE_CHECKING only. A checked pipeline is plain JSON; every key named here is
always present (a value that was not given has its default), nothing else is, and checking it
again yields the same bytes. Its canonical JSON is what a run stores and hashes at its start.

Rule 1: steps run in the order written.
  A step ends with an outcome: DONE, NEEDS_REVISION or ERROR (some rules add others, below).
  step["on"] says what follows each of them. Nothing follows from the position in the list
  alone: on["DONE"] already names the next step, or ends the run. Steps with "aside": true are
  not on the way; only a route brings a run there.

Rule 2: an outcome is followed by one of six things ("do").
  go_on   to a later step. Hops that still wait and lie before it are dropped; it runs next.
  route   the hops, one after the other, then whatever waited behind. The last hop of a route
          is always the step that took it, so the same step decides again. A counter counts how
          often: per run, never reset except by a stage restart that lists it in "resets". Two
          routes with one counter share it. When it stands at "at_most", "then" follows instead.
          Only a gate's route has no bound ("at_most": None): a person asks for it each time.
  pause   the run waits for a person: retry (the step that took it runs again) or reject.
  block   the run is blocked with a reason until a person unblocks it.
  fail    the run ends as failed; its last line is `ERROR: <summary>`.
  finish  the run ends as completed, poc-complete or graduated.

  A route with "because" is for the case that this member is among the reasons of the outcome.
  If it is not, "otherwise" follows ("then" where the author gave none).
  "with" are outputs of the step that took the route; the hops before the last one receive them
  as findings. "carry" on a go_on hands the step's outputs to that later step under this name.
  A hop's step ends as ever: DONE leads to the next hop, everything else to that step's own "on".

Rule 3: what runs in a step.
  agent    one seat. modes[hop["mode"]] replaces it where a hop names a mode.
  cluster  "first" alone, if there is one; its ERROR, after its retries, skips the members. Then
           the members side by side under the cap. Fewer than "quorum" outputs: the cluster is
           ERROR and the aggregator does not run. Else the aggregator runs, if there is one, and
           the outcome is the worse of its word and the rule over the members. A hop with "only"
           runs these members again, then the aggregator over all outputs.
  waves    items from the plan. per_item "named": the seat that the item's agent field names, the
           default otherwise. "in-turn": every seat, one after the other. "side-by-side": every
           seat at once. A hop's "items" says which items: due (new, changed, failed or never
           started), failing (these, and those the findings name), affected (those a finding
           names by id or file; none matched: all), all.
           on_item_error "stop": the wave's remaining items run, no later wave starts.
           "skip-dependents": everything runs that does not depend on the failed item.
  gate     a person decides: approve is DONE, reject is ERROR, revise is NEEDS_REVISION. Everybody on
           the way back is told the person's words; a waves step that comes first there runs its
           affected items unless the hop says which.
  action   the engine itself does what the names say. before, after and between name the same
           actions: before the step, after its DONE, between two waves.

Rule 4: a seat is one agent's place in a step. An attempt is one invocation of a seat.
  Attempts per visit are at most 1 + the sum of its "retry" + its "questions". LOST is for an
  attempt whose outcome nobody knows; with none left it counts as ERROR, and is made again where an
  ERROR still is. Where that would fail the run, the run pauses: no run fails because its machine
  did. One that certainly never started counts as nothing. "transient" are restarts inside one
  attempt. A verdict that is not in "verdicts" is an ERROR.

Rule 5: rules that turn words into an outcome (step["rule"]).
  word    the verdict line of the agent; for waves the worst item; for gates the decision
  quorum  a cluster without aggregator: DONE with enough outputs
  ct v r  over the members' verdicts and findings, an aggregator can only be stricter
  audit   a JSON verdict PASS, DESIGN_FLAW, IMPLEMENTATION_FLAW, ESCALATE: these become outcomes
          of the same names (PASS and flaws with minor issues only: DONE)
  review  a JSON review; an issue at or above review["min_block_severity"] is NEEDS_REVISION.
          With "coverage": figures below the threshold are LOW_COVERAGE.

Paths: in, if_present, out, optional, append_only, show, evidence_for_next, plan, items, record
are below pipeline["documents"]; touches and setup["copy"] are below the repository. {slug} is the
run, {item} the item's id, {number} its number with three digits, {iteration} the visit's number.
A `*` stands for anything within one folder, `**` for any folders. An output with a `*` needs at
least one file.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

PathPart = str | int
Verdict = Literal["DONE", "NEEDS_REVISION", "ERROR"]
OutcomeName = Literal[
    "DONE", "NEEDS_REVISION", "ERROR", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE", "LOW_COVERAGE"
]
Rule = Literal["word", "quorum", "ct", "v", "r", "audit", "review"]
Weight = Literal["blocking", "normal", "never-blocks"]
Items = Literal["", "due", "failing", "affected", "all"]
Finish = Literal["completed", "poc-complete", "graduated"]
ActionName = Literal[
    "write-request", "initialize-memory", "prune-memory", "extract-lessons", "invalidate-memory", "clean-memory",
    "choose-review-tier", "promote-memory", "record-debt", "check-graduation", "mark-graduated",
]  # fmt: skip


class Problem(TypedDict):
    """One thing wrong with a definition. `path` leads from the top of the data to it."""

    path: list[PathPart]
    code: str
    message: str
    hint: str


# ---- what runs -------------------------------------------------------------------------------------


class Retry(TypedDict):
    ERROR: int
    NEEDS_REVISION: int
    LOST: int


class Check(TypedDict):
    """A command that the engine runs itself after a DONE. No `run`: the project's own command of that name, if it has one."""

    name: str
    run: str
    time_limit: int | None


_SeatReads = TypedDict("_SeatReads", {"in": list[str]})


class Seat(_SeatReads):
    id: str  # unique in its step; what `because`, `only` and the journal call it
    role: str
    mode: str  # of the role; "" is its plain one
    focus: str
    task: str  # what the attempt is called where a dialect shows tasks
    if_present: list[str]
    context: list[str]  # review-tier, git-diff, item, answers, project-memory
    out: list[str]  # must exist, not be empty, and have changed
    optional: list[str]  # may be written
    append_only: list[str]  # of these two: whose old bytes stay as a prefix
    touches: list[str]  # files in the work tree it may change besides; "@item": its item's files
    memory: Literal["read", "write"]
    weight: Weight
    verdicts: list[Verdict]
    retry: Retry
    transient: int
    time_limit: int | None  # seconds
    questions: int  # how often it may ask a person, per visit
    checks: list[Check]
    program: str  # "": the run's choice


class Cluster(TypedDict):
    first: Seat | None
    members: list[Seat]
    quorum: int


class ItemLimits(TypedDict):
    files: int | None
    depends_on: int | None
    lines: int | None
    effort: Literal["", "Low", "Medium", "High"]


class Waves(TypedDict):
    plan: list[str]  # the first of these that holds items
    items: str  # item files; "" where the plan holds all
    seats: list[Seat]
    per_item: Literal["named", "in-turn", "side-by-side"]
    default: str  # the seat for items that name none, or none we know
    order: Literal["barrier", "rolling"]
    at_once: int | None  # below the cap; None: the cap
    on_item_error: Literal["stop", "skip-dependents"]
    no_items: Literal["refuse", "one"]  # one: the whole plan is a single item
    max_items: int | None
    limits: ItemLimits
    strict: bool | str  # a limit passed is NEEDS_REVISION for the planner, not a warning; or the switch that says so
    record: str  # where the engine writes items and results as JSON; "" for nowhere


class GateAsks(TypedDict):
    name: str
    prompt: str
    show: list[str]
    options: list[Literal["approve", "reject", "revise"]]


class ReviewPolicy(TypedDict):
    min_block_severity: Literal["LOW", "MEDIUM", "HIGH"]


class Coverage(TypedDict):
    threshold: int  # percent


# ---- what follows ----------------------------------------------------------------------------------


class Hop(TypedDict):
    step: str
    mode: str  # agent steps: which of step["modes"]; "" the plain seat
    only: list[str]  # clusters: only these seats; [] all
    items: Items  # waves: which items; "" for other kinds


class GoOn(TypedDict):
    do: Literal["go_on"]
    to: str
    carry: str


_RouteWith = TypedDict("_RouteWith", {"with": list[str]})


class Route(_RouteWith):
    do: Literal["route"]
    route: list[Hop]
    at_most: int | None
    counter: str
    resets: list[str]
    restart: str  # the stage that this route restarts; "" for an ordinary route
    because: str
    otherwise: Outcome | None
    then: Outcome | None  # None only where at_most is


class Pause(TypedDict):
    do: Literal["pause"]
    reason: str
    recommendations: list[str]


class Block(TypedDict):
    do: Literal["block"]
    reason: str


class Fail(TypedDict):
    do: Literal["fail"]
    reason: str


_FinishAs = TypedDict("_FinishAs", {"as": Finish})


class FinishRun(_FinishAs):
    do: Literal["finish"]


Outcome = GoOn | Route | Pause | Block | Fail | FinishRun


# ---- steps -----------------------------------------------------------------------------------------


class Budget(TypedDict):
    """None: no limit. The attempt_* figures are what one attempt reserves."""

    attempts: int | None
    tokens: int | None
    micro_usd: int | None
    wall_clock: int | None  # seconds
    attempt_tokens: int | None
    attempt_micro_usd: int | None


class StepCommon(TypedDict):
    id: str
    name: str
    stage: str  # "" where the pipeline has no stages
    type: str  # a word for people and schedules: dispatch, subagent, review, gate, action
    number: str  # as people count: 1.2, 3b
    phase: int  # the whole number in it: memory is pruned by these
    aside: bool
    when: str  # "always", or the switch that must be on
    rule: Rule
    before: list[ActionName]
    after: list[ActionName]
    on: dict[OutcomeName, Outcome]
    evidence_for_next: list[str]  # must exist before the run leaves this step's stage
    budget: Budget


class AgentStep(StepCommon):
    kind: Literal["agent"]
    agent: Seat
    modes: dict[str, Seat]
    review: ReviewPolicy | None
    coverage: Coverage | None


class ClusterStep(StepCommon):
    kind: Literal["cluster"]
    cluster: Cluster
    aggregate: Seat | None


class WavesStep(StepCommon):
    kind: Literal["waves"]
    waves: Waves
    between: list[ActionName]


class GateStep(StepCommon):
    kind: Literal["gate"]
    gate: GateAsks


class ActionStep(StepCommon):
    kind: Literal["action"]
    action: list[ActionName]


Step = AgentStep | ClusterStep | WavesStep | GateStep | ActionStep


class Setup(TypedDict):
    """What a fresh work tree needs before an agent starts in it."""

    run: list[str]
    copy: list[str]


class Pipeline(TypedDict):
    language: Literal[1]
    name: str
    description: str
    shown_as: list[str]
    documents: str  # the folder of the run's documents, below the repository
    mode: Literal["standard", "poc"]
    starts_from: Literal["new", "poc-complete"]
    finish: Finish
    cap: int
    workspace: Literal["shared", "worktree"]
    setup: Setup
    memory: Literal["run", "none"]
    switches: dict[str, bool]  # what `when` may name, and whether it is on unless the run says otherwise
    given: list[str]  # documents that exist from the start and every seat reads
    existing: list[str]  # other documents that exist from the start
    skips: list[str]  # phases that this pipeline leaves out, for the debt record
    budget: Budget
    settings: dict[str, Any]  # kept word for word
    steps: list[Step]


class StageGate(TypedDict):
    """What a stage must leave behind, from the evidence of its steps."""

    stage: str
    next: str  # the following stage, or COMPLETE
    required: list[str]
    step: str  # the last one that proves something


# ---- bounds ----------------------------------------------------------------------------------------


class Visits(TypedDict):
    """Visits of one step for one reason."""

    because: str  # "on the way", or the counter of the route that leads there
    times: int
    attempts: int  # per visit
    starts: int  # per visit, restarts inside an attempt included


class Contribution(TypedDict):
    step: str
    visits: list[Visits]
    attempts: int
    starts: int


class Bound(TypedDict):
    """The most that can happen before the run ends or waits for a person."""

    items: int
    attempts: int
    starts: int
    steps: list[Contribution]  # those that start agents, in the order of the pipeline
    routes: dict[str, int]  # how often each counter can be used up, resets included
