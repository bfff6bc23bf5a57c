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
  go_on   to a later step. Legs that still wait and lie before it are dropped; it runs next.
  route   the legs, one after the other, then whatever waited behind. The last leg of a route
          is always the step that took it, so the same step decides again. A counter counts how
          often: per run, never reset except by a stage restart that lists it in "resets". Two
          routes with one counter share it. When it stands at "at_most", "then" follows instead.
          Only a gate's route has no bound ("at_most": None): a person asks for it each time.
  pause   the run waits for a person: retry (the step that took it runs again) or reject.
  block   the run is blocked with a reason until a person unblocks it.
  fail    the run ends as failed; its last line is `ERROR: <summary>`.
  finish  the run ends as completed, poc-complete or graduated.

  A route with "because" is for the case that this member is among the reasons of the outcome, one
  with "when" for the case that this holds, asked when the step has ended. If it does not,
  "otherwise" follows ("then" where the author gave none).
  "with" are outputs of the step that took the route; the legs before the last one receive them
  as findings. "carry" on a go_on hands the step's outputs to that later step under this name.
  A leg's step ends as ever: DONE leads to the next leg, everything else to that step's own "on".

Rule 3: what runs in a step.
  agent    one seat. modes[leg["mode"]] replaces it where a leg names a mode.
  cluster  "first" alone, if there is one; its ERROR, after its retries, skips the members. Then
           the members side by side under the cap. Fewer than "quorum" outputs: the cluster is
           ERROR and the aggregator does not run. Else the aggregator runs, if there is one, and
           the outcome is the worse of its word and the rule over the members. A leg with "only"
           runs these members again, then the aggregator over all outputs.
  waves    items from the plan. per_item "named": the seat that the item's agent field names, the
           default otherwise. "in-turn": every seat, one after the other. "side-by-side": every
           seat at once. A leg's "items" says which items: due (new, changed, failed or never
           started), failing (these, and those the findings name; nothing selected: all), affected
           (those a finding names by id or file; none matched: all), all.
           on_item_error "stop": the wave's remaining items run, no later wave starts.
           "skip-dependents": everything runs that does not depend on the failed item. "halt": no further
           item starts. "quorum": so many must end well, or so many of a hundred; all otherwise.
  each     is written beside an agent, a command or a cluster: that for every element of a list, or in waves
           instead of a plan. The list is a parameter, a field of a result, the lines that a command prints,
           files or the rows of a table. It becomes waves whose items are the elements, in rolling order unless
           said otherwise. {item} is an element's key, a name; {each.FIELD} one of its fields, in a command's
           arguments and environment and in `task`. The agent's prompt holds all of them, as data. The step
           is DONE when there is nothing to do. A list that cannot be carried out is NEEDS_REVISION: longer
           than `max`, without keys, with two of one key, with dependencies that lead in a circle.
  gate     a person decides: approve is DONE, reject is ERROR, revise is NEEDS_REVISION. Everybody on
           the way back is told the person's words; a waves step that comes first there runs its
           affected items unless the leg says which.
  action   the engine itself does what the names say. before, after and between name the same
           actions: before the step, after its DONE, between two waves and behind the last.

  pipeline is a whole pipeline in a step's place. When the definition is read, its steps take that place, each called
           after both (`mend.prove`), in documents' folder of its own. Where it would finish the run, the run goes on at
           a step with the name of the whole, which has nothing to do, and whose DONE says what follows. Where it would
           fail the run, the step's ERROR follows, with one counter for all. `when` is asked once, before its first
           step. Cap, workspace, memory, mode and budget are the run's. A route, a go_on and a condition on the outcome
           or the result may name the whole. With `each`, its agents and commands work on every element in turn.

  command  is written in an agent's place, in a step of its own or as a member of a cluster or of waves:
           a program of the project with its arguments, supervised like an agent. Exit status 0 is DONE,
           any other ERROR, unless `exits` says otherwise. Its standard output can be a document.

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

Rule 6: parameters and conditions.
  params are what a run may be told besides its request. A value takes the place of {params.NAME} in
  focus, task, paths, prompts, commands and env when the run begins; what comes of it is checked
  like any other text of a definition. A parameter without a default must be given. One of type file names a file of
  the repository; what steps read of it is a document of the run, as the file was when the run began.
  `when` is asked when the run reaches the step, from what is recorded: switches, parameters, how
  earlier steps ended, fields of their results, and files, which the engine looks at then. A step
  whose condition does not hold is left out, and the run goes on as after its DONE. A member of a
  cluster may have one, too, which is asked at the same time: without it, the quorum is as high as
  before. What is not known does not hold.

Rule 7: results and inputs.
  result is JSON that an agent or a command hands in besides its verdict: in a document, in the last
  fenced block of the reply, or (a command) as its standard output. A DONE or NEEDS_REVISION whose
  result is missing or does not fit its schema is an ERROR that says where and why; another attempt
  is told so. The schema is part of the definition that the run is bound to, also where it was read
  from a file. The result of a step is what its last attempt handed in, where that counted.
  context names what else an agent is told: results, findings and answers of steps that can have run
  before. What is more than context_budget is left out, and a receipt in the prompt says what: first
  parts of an entry, those of later entries before those of earlier ones, whole entries last.

Rule 8: forms.
  A gate's `fields` are declared like parameters and answered with the approval; reject and revise take none.
  {answers.GATE.FIELD} stands for an answer in focus, task, prompts, commands and env of later steps, and
  `when: {answer: GATE.FIELD, is: ...}` asks for it. In an agent's prompt free text stands as data below. Where the
  gate was left out nothing is known: a command that needs the answer is an ERROR, and is not started.

Paths: in, if_present, out, optional, append_only, show, evidence_for_next, plan, items, record
are below pipeline["documents"]; touches and setup["copy"] are below the repository. {slug} is the
run, {item} the item's id, {number} its number with three digits, {iteration} the visit's number.
A `*` stands for anything within one folder, `**` for any folders. An output with a `*` needs at
least one file.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict, final

from tenuto.core.records.run import Items, Json, Leg, Param, ParamType, ParamValue, Verdict

__all__ = ["Items", "Leg", "Param", "ParamType", "ParamValue", "Verdict"]

PathPart = str | int
OutcomeName = Literal[
    "DONE", "NEEDS_REVISION", "ERROR", "DESIGN_FLAW", "IMPLEMENTATION_FLAW", "ESCALATE", "LOW_COVERAGE"
]
Rule = Literal["word", "quorum", "ct", "v", "r", "audit", "review"]
Weight = Literal["blocking", "normal", "never-blocks"]
Finish = Literal["completed", "poc-complete", "graduated"]
ActionName = Literal[
    "write-request",
    "initialize-memory",
    "prune-memory",
    "extract-lessons",
    "choose-review-tier",
    "promote-memory",
    "record-debt",
    "check-graduation",
    "mark-graduated",
]


class Problem(TypedDict):
    """One thing wrong with a definition. `path` leads from the top of the data to it."""

    path: list[PathPart]
    code: str
    message: str
    hint: str


# ---- conditions: a word is the name of a switch, or "always" ---------------------------------------


@final
class AllOf(TypedDict):
    all: list[When]


@final
class AnyOf(TypedDict):
    any: list[When]


_Not = TypedDict("_Not", {"not": "When"})


@final
class Not(_Not):
    pass


@final
class SwitchIsOn(TypedDict):
    switch: str


@final
class FileExists(TypedDict):
    exists: str  # a document of the run


@final
class FileChanged(TypedDict):
    changed: str  # a pattern of files in the repository, since the run began


_Compares = TypedDict(
    "_Compares",
    {
        "is": str | int | float | bool,
        "in": list[str | int | float],
        "more_than": int | float,
        "less_than": int | float,
        "at_least": int | float,
        "at_most": int | float,
        "has": str,
    },
    total=False,
)


@final
class ParamCompares(_Compares):
    """With exactly one of the comparisons."""

    param: str


@final
class OutcomeCompares(_Compares):
    outcome: str  # of the last visit of this step


@final
class ResultCompares(_Compares):
    result: str  # a step, or STEP/SEAT
    field: str  # names with dots between them; "" is the whole result


@final
class AnswerCompares(_Compares):
    answer: str  # GATE.FIELD: what a person answered when the gate was approved last


@final
class ElementCompares(_Compares):
    element: str  # one of its fields


Compares = ParamCompares | OutcomeCompares | ResultCompares | AnswerCompares | ElementCompares
Condition = AllOf | AnyOf | Not | SwitchIsOn | FileExists | FileChanged | Compares
When = str | Condition


# ---- what runs -------------------------------------------------------------------------------------


class Retry(TypedDict):
    ERROR: int
    NEEDS_REVISION: int
    LOST: int


class Check(TypedDict):
    """A command that the engine runs itself after a DONE. No `run`: the project's own command of that name, if it
    has one."""

    name: str
    run: str
    time_limit: int | None


class PlannedChecks(TypedDict):
    """What of a pipeline the engine runs itself, with the commands that the settings give."""

    commands: list[str]  # each once, in the order of the steps
    left_out: list[str]  # names that the pipeline wants and no command is known for


class Command(TypedDict):
    """A program of the project in an agent's place: no model, no prompt; its exit status is its verdict."""

    run: list[str]  # the program and its arguments; never a line for a shell
    env: dict[str, str]  # besides what every attempt gets
    exits: dict[str, Verdict]  # by exit status; 0 is DONE and any other ERROR unless this says otherwise
    stdout: str  # the document that its standard output becomes; "" for none


class ResultAsked(TypedDict):
    """JSON that an attempt hands in besides its verdict: in a document, or in the reply's last fenced block (of a
    command: what it printed)."""

    schema: Json  # word for word, also where it was read from a file
    file: str  # the document; "": the reply


@final
class ResultInput(TypedDict):
    result: str  # a step, or STEP/SEAT


@final
class FindingsInput(TypedDict):
    findings: str  # a step, or STEP/SEAT


@final
class AnswersInput(TypedDict):
    answers: str  # a gate, by its step


StepInput = ResultInput | FindingsInput | AnswersInput
_SeatReads = TypedDict("_SeatReads", {"in": list[str]})


class Seat(_SeatReads):
    id: str  # unique in its step; what `because`, `only` and the journal call it
    role: str
    mode: str  # of the role; "" is its plain one
    focus: str
    task: str  # what the attempt is called where a dialect shows tasks
    if_present: list[str]
    context: list[str | StepInput]  # review-tier, git-diff, item, answers, project-memory; of earlier steps
    context_budget: int  # tokens of all of that together
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
    command: Command | None  # None: an agent works here
    result: ResultAsked | None  # None: the verdict is all that it hands in
    when: When  # of a member of a cluster; always for everybody else


class Cluster(TypedDict):
    first: Seat | None
    members: list[Seat]
    quorum: int


class ItemLimits(TypedDict):
    files: int | None
    depends_on: int | None
    lines: int | None
    effort: Literal["", "Low", "Medium", "High"]


class Each(TypedDict):
    """Where the items of a step come from, where no plan has them: a list. Exactly one of the first five is given."""

    param: str  # a parameter of the run that is a list
    result: str  # the step whose result has it
    lines: str  # the document whose lines it is
    files: str  # a pattern of files in the repository
    table: str  # the document that has the table
    field: str  # of a result: where in it the list is; of a table: the heading above it
    seat: Seat | None  # the command that prints the lines
    key: str  # the field that an element is called by; "": made from its text
    depends_on: str  # the field that names the elements it waits for
    files_of: str  # the field that names the files it is about
    when: When  # which elements run
    max: int  # elements; a longer list is refused


class Team(TypedDict):
    """How the seats of an item work together: as in a cluster."""

    first: str  # the seat that works alone before the others; "" for none
    aggregate: str  # the seat that draws the conclusion; "" for none
    quorum: int
    rule: Rule


class Waves(TypedDict):
    plan: list[str]  # the first of these that holds items
    each: Each | None  # the list that holds them instead
    items: str  # item files; "" where the plan holds all
    seats: list[Seat]
    per_item: Literal["named", "in-turn", "side-by-side", "cluster"]
    cluster: Team | None  # with per_item: cluster
    default: str  # the seat for items that name none, or none we know
    order: Literal["barrier", "rolling"]
    at_once: int | None  # below the cap; None: the cap
    on_item_error: Literal["stop", "skip-dependents", "halt"]
    quorum: int | str  # how many items must end well, or how many of a hundred ("80%"); "": all
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
    fields: dict[str, Param]  # what an approval must answer


class ReviewPolicy(TypedDict):
    min_block_severity: Literal["LOW", "MEDIUM", "HIGH"]


class Coverage(TypedDict):
    threshold: int  # percent


# ---- what follows ----------------------------------------------------------------------------------


class GoOn(TypedDict):
    do: Literal["go_on"]
    to: str
    carry: str


_RouteWith = TypedDict("_RouteWith", {"with": list[str]})


class Route(_RouteWith):
    do: Literal["route"]
    route: list[Leg]
    at_most: int | None
    counter: str
    resets: list[str]
    restart: str  # the stage that this route restarts; "" for an ordinary route
    because: str
    when: When
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
    when: When
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
    ends: NotRequired[str]  # the sub-pipeline that ends here; the step has the name of the whole (nested.py)


Step = AgentStep | ClusterStep | WavesStep | GateStep | ActionStep


class Setup(TypedDict):
    """What a fresh work tree needs before an agent starts in it."""

    run: list[str]
    copy: list[str]


class Pipeline(TypedDict):
    language: Literal[3]
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
    params: dict[str, Param]
    switches: dict[str, bool]  # what `when` may name, and whether it is on unless the run says otherwise
    given: list[str]  # documents that exist from the start and every seat reads
    existing: list[str]  # other documents that exist from the start
    skips: list[str]  # phases that this pipeline leaves out, for the debt record
    budget: Budget
    settings: Json  # kept word for word
    steps: list[Step]


class Terms(TypedDict):
    """What a mode of a role promises."""

    inputs: list[str]
    outputs: list[str]
    verdicts: list[str]
    memory: str


class Role(TypedDict):
    name: str
    description: str
    origin: str  # tenuto, shipped, claude or github
    file: str
    text: str  # the body, all modes
    modes: dict[str, Terms]
    default_mode: str
    any_mode: bool  # another program's agent: its modes are not declared
    tools: list[str]
    model: str
    extra: dict[str, object]  # front matter that means nothing here


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
