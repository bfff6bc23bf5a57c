"""What a heading is about: the table of words that architects, specification writers, implementers and
auditors put over the parts a later phase asks for.

    topics_of(title) -> set of topics      "3.2 Edge Cases & Errors" -> {"edge-cases"}

Rules: markup, numbers, signs and case do not count; camelCase and snake_case are words. The longest
phrase wins over the shorter ones inside it. A phrase of one word counts only in a short title or at one
of its ends ("File upload service" is not about files). "(s)" in the table stands for both numbers.

Never looks at the text under a heading.
"""

from __future__ import annotations

from tenuto.knowledge.patterns import pattern

# What is asked for, and three that are asked for by nobody: background (why and how it came about), discarded
# (what is not, or no longer, so) and examples (how it might be used). They make a section less believable.
TOPICS: dict[str, str] = {
    "decisions": """
        design decision(s); key decision(s); decision(s); decision log; decision record(s); adr(s); rationale;
        architectural decision(s); architecture decision(s); technical decision(s); design choice(s); choice(s);
        approach; chosen approach; technical approach; solution; proposed solution; solution design; proposal; design;
        proposed design; technical design; detailed design; high level design; architecture; architecture overview;
        system design; strategy; tech stack; technology; technologies; stack; key change(s); trade off(s); tradeoff(s);
        what we decided; what we chose; conclusion(s); component(s); component design; data flow; guidance;
        module design; overall design; core idea; decided""",
    "files": """
        files; file structure; file layout; file placement; placement; file placement guidance; file organization;
        file organisation; directory structure; directory layout; directories; folder structure; folder layout; folders;
        project structure; project layout; code layout; code organization; code organisation; module layout;
        module structure; package layout; package structure; repository layout; repo layout; repository structure;
        source layout; source tree; source file(s); files to create; files to modify; files to change; files to touch; files to edit;
        files to add; files to update; files to delete; files to create modify; files to create or modify; files to be;
        files affected; affected files; files modified; files created; files changed; file(s) touched; new file(s);
        modified file(s); changed file(s); created file(s); impacted files; target files; touched files; file summary;
        file changes; file list; file plan; file map; file declarations; files and modules; where things go;
        where it goes; where code goes; where it lives; where things live; where everything lives; where to put;
        location(s); code location(s); file location(s); creates; modifies; create; modify; deletes; delete; touches;
        adds; updates; layout; file; path(s); module map; change list; changes by file; file by file; deliverable(s);
        what goes where; files in play; touch points; touchpoints; files and placement""",
    "constraints": """
        constraint(s); key constraint(s); design constraint(s); technical constraint(s); hard constraint(s); limitation(s);
        non goal(s); nongoal(s); out of scope; scope; invariant(s); non functional requirement(s); nfr(s);
        non functional; guardrail(s); ground rules; rules; do not; dont; don t; do s and don ts; dos and donts; must not;
        assumption(s); backward compatibility; backwards compatibility; compatibility; security requirement(s);
        performance requirement(s); performance budget; budget(s); compliance; prohibited; restriction(s); policies;
        policy; dependency rules; what we will not do; what we won t do; boundaries; security constraint(s);
        requirements and constraints; security; must haves; red lines; not allowed; promises; guarantee(s)""",
    "patterns": """
        pattern(s); design pattern(s); code pattern(s); coding pattern(s); required pattern(s); existing pattern(s);
        architectural pattern(s); convention(s); coding convention(s); naming; naming convention(s); code style; style;
        style guide; principle(s); design principle(s); solid; solid principle(s); best practice(s); guideline(s);
        coding guideline(s); practices; coding standard(s); standards; idiom(s); conventions to follow;
        patterns to follow; how we do it here; how we write it; house style; house rules; reuse""",
    "signatures": """
        signature(s); function signature(s); method signature(s); typescript signature(s); exact signature(s);
        function(s); method(s); public function(s); public method(s); api; apis; public api; api surface; api design;
        api contract(s); api reference; api specification; api definition(s); api endpoint(s); rest api; http api;
        interface(s); public interface(s); module interface(s); interface definition(s); key interface(s); contract(s);
        interface contract(s); public contract(s); export(s); exported function(s); exported; endpoint(s); route(s);
        operation(s); command(s); cli; command line; command line interface; entry point(s); rpc(s); service definition(s);
        hook(s); callback(s); handler(s); public surface; surface; stub(s); prototype(s); declaration(s); procedure(s);
        class(es); class design; component api(s); queries; mutations; resolvers; code contract(s); header(s); functions;
        what it exposes; what it offers; calls; port(s); the interface; module api; programming interface; verbs;
        macro(s); subroutine(s); trait(s); protocol(s)""",
    "types": """
        type(s); type definition(s); type declaration(s); data type(s); data model(s); model(s); domain model(s);
        domain type(s); schema(s); data schema; database schema; db schema; sql schema; graphql schema; json schema;
        table(s); data structure(s); structure(s); struct(s); entities; entity; enum(s); enumeration(s); prop(s);
        component prop(s); props interface(s); interface(s); key interface(s); dto(s); record(s); message(s);
        message format(s); payload(s); request body; response body; request and response; response shape(s); shape(s);
        state shape; data shape(s); class(es); value object(s); field(s); column(s); constant(s); config schema;
        configuration schema; configuration option(s); error type(s); error class(es); exception type(s);
        exception class(es); data contract(s); wire format; storage format; file format; record layout; nouns; vocabulary;
        data definition(s); database; storage schema; migration sql; ddl; shared types; data; core types; trait(s);
        protocol(s)""",
    "edge-cases": """
        edge case(s); corner case(s); boundary condition(s); boundary case(s); boundary value(s); error handling;
        error(s); error case(s); error condition(s); error scenario(s); error path(s); error behavior; error model;
        error semantics; error contract; error code(s); error response(s); error matrix; error table; exception(s);
        exception handling; exceptional case(s); exceptional condition(s); failure mode(s); failure(s); failure case(s);
        failure scenario(s); failure handling; failure semantics; failure behavior; special case(s); unusual case(s);
        tricky case(s); tricky bit(s); tricky part(s); tricky situation(s); odd case(s); hard case(s); awkward case(s);
        gotcha(s); pitfall(s); trap(s); caveat(s); what can go wrong; what could go wrong; what may go wrong;
        when things go wrong; when it goes wrong; if things go wrong; what happens when; what if; what ifs;
        things to watch; things to watch out for; watch out; watch out for; validation; validation rule(s);
        input validation; invalid input(s); bad input(s); limit(s); limits and quotas; negative case(s); negative test(s);
        unhappy path(s); sad path(s); degenerate case(s); degenerate input(s); fallback(s); recovery; error recovery;
        race condition(s); race(s); concurrency; status code(s); exit code(s); precondition(s); postcondition(s);
        case(s) to handle; scenario(s) to handle; must handle; handling of; quirk(s); oddities; odd stuff; weird stuff; the weird stuff; weird case(s); strange case(s); unusual situation(s);
        what else can happen; nasty bit(s); fine print; surprise(s); landmine(s);
        sharp edge(s); abnormal case(s); abnormal condition(s); fault(s); fault handling; faults and recovery; cases;
        retry; retries; timeout(s); robustness; resilience; raises; throws; refusal(s); rejection(s); warnings;
        boundaries; unexpected input(s); hazards; situations; cope with; has to cope with; things to remember;
        do not forget; watch for; what happens if; error policy; failure policy; guards""",
    "behaviors": """
        behavior(s); expected behavior(s); behavior worth knowing; semantics; business rule(s); business logic; rules;
        rules of behavior; how it behaves; how it works; observable behavior(s); behavioral spec; ordering rule(s);
        guarantee(s); property; properties; expected result(s); expected outcome(s); expected output(s); processing rules;
        rules to follow; details; contract details; operation rules; state transition(s); transition(s); lifecycle""",
    "checks": """
        acceptance criteria; acceptance criterion; acceptance test(s); acceptance; success criteria; definition of done;
        done when; functional requirement(s); requirement(s); user stories; user story; use case(s); scenario(s);
        expectation(s); test case(s); test plan; test scenario(s); test consideration(s); test matrix; test(s); testing;
        testing note(s); note(s) for testing; test strategy; testing strategy; test spec; test hint(s); unit test(s);
        integration test(s); verification; verification checklist; what to test; how to verify; given when then;
        what done means; things to verify; feature(s); coverage areas""",
    "issues": """
        issue(s); issue(s) found; finding(s); problem(s); problem(s) found; critical issue(s); major issue(s);
        minor issue(s); critical; major; minor; critical finding(s); major finding(s); minor finding(s);
        blocking issue(s); blocking; non blocking; blocker(s); defect(s); bug(s); concern(s); violation(s); flaw(s);
        design flaw(s); unresolved issue(s); previous issue(s); remaining issue(s); verdict; feedback; audit feedback;
        what is wrong; what s wrong; observation(s); comment(s); weakness(es); gap(s); deviation(s);
        spec deviation(s); security; reason; kickback context; kickback; what fails; what failed; high; medium; low;
        must fix; should fix""",
    "fix": """
        fix; fixes; fix required; required fix(es); recommendation(s); suggested fix(es); suggestion(s); remediation;
        to fix; issue(s) to fix; issues to fix; what to fix; what to change; what must change; change request(s);
        required change(s); required action(s); action(s) required; action item(s); action(s); required; correction(s);
        next step(s); how to fix; requested change(s); requirements for approval; to be fixed; must change""",
    "preserve": """
        preserve; preserved; to preserve; what to preserve; keep; keep as is; what to keep; do not change; do not touch;
        leave as is; leave alone; strength(s); positive finding(s); positive(s); what works; what works well;
        what is good; what s good; what is right; good part(s); well done; unchanged; approved part(s); solid parts;
        working well; what holds; good""",
    "tests": """
        test(s) to verify; tests to run; test(s); test file(s); verify with; verification; run command; how to run;
        test command(s); failing test(s); failed test(s); tests to rerun; tests to re run; test case(s); test plan;
        unit test(s); integration test(s); regression test(s); coverage areas; coverage""",
    "failures": """
        failure(s); failed; failing; failed test(s); failing test(s); test failure(s); error(s); problem(s);
        issue(s); failure details; what failed; regressions""",
    "background": """
        background; motivation; purpose; overview; executive summary; summary; introduction; intro; context; problem;
        problem statement; problem analysis; the problem; goals; goal; objective(s); history; option(s); reference(s); link(s); further reading; glossary; terminology; changelog; change history;
        revision history; timeline; milestone(s); schedule; estimate(s); effort; rollout; roll out; rollout plan;
        release plan; deployment; monitoring; observability; metrics; dashboards; team; people; stakeholder(s);
        appendix; acknowledgements; meeting note(s); status; table of contents; contents; related work; prior art;
        future work; later; next; open question(s); open point(s); question(s); current state; current situation; situation; why; why now; why this; why not; discussion; notes from; risk(s);
        research; analysis; cost(s); benchmark(s); performance; success metrics; impact; story; faq; how we got here;
        implementation notes; implementation sketch; implementation details; implementation order; task ordering;
        parallelization; implementation steps; steps; migration plan; migration; operations notes; walkthrough""",
    "discarded": """
        alternative(s); alternatives considered; considered alternatives; rejected alternative(s); other options;
        options considered; rejected option(s); rejected approach(es); rejected; existing code; existing system; existing architecture;
        current architecture; current design; current system; current implementation; as is; today; status quo;
        current code; legacy; legacy code; before; old code; old api; what we tried; what we rejected;
        what we did not choose; not chosen; discarded""",
    "examples": """
        example(s); usage; usage example(s); sample(s); sample usage; demo; quick start; quickstart; snippet(s);
        example usage; worked example(s); illustration(s); how to use""",
}

# The topics nobody asks for.
ASIDE = frozenset({"background", "discarded", "examples"})

_MARKUP = pattern(r"<[^>]*>|\{#[^}]*\}|\]\([^)]*\)|[`*_~#\[\]]+")
_CAMEL = pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = pattern(r"[a-z0-9]+")
_NUMBER = pattern(r"\d+|[ivx]+|[a-d]|s")
_STOP = {"the", "a", "an", "of", "our", "and", "or", "for", "to", "its", "all", "new", "key", "main", "exact", "full"}


def _phrases() -> dict[tuple[str, ...], set[str]]:
    table: dict[tuple[str, ...], set[str]] = {}
    for topic, text in TOPICS.items():
        for phrase in text.split(";"):
            words = phrase.split()
            if not words:
                continue
            for number in ("", "s"):
                told = tuple(word.replace("(s)", number).replace("(es)", "es" if number else "") for word in words)
                table.setdefault(told, set()).add(topic)
                if "(" not in phrase:
                    break
    return table


_PHRASES = _phrases()
_LONGEST = max(map(len, _PHRASES))


def words_of(title: str) -> list[str]:
    """A title's words, lower case, without markup, numbering and signs; one spelling of behaviour."""
    plain = _CAMEL.sub(" ", _MARKUP.sub(" ", title)).lower().replace("behaviour", "behavior")
    words = _WORD.findall(plain)
    while len(words) > 1 and _NUMBER.fullmatch(words[0]):
        words.pop(0)
    return words


def topics_of(title: str) -> frozenset[str]:
    words = words_of(title[:200])
    if len(words) > 14:
        return frozenset()
    found: set[str] = set()
    telling = [word for word in words if word not in _STOP]
    at = 0
    while at < len(words):
        for size in range(min(_LONGEST, len(words) - at), 0, -1):
            topics = _PHRASES.get(tuple(words[at : at + size]))
            if topics and (size > 1 or _counts_alone(words[at], telling, topics <= ASIDE)):
                found |= topics
                at += size
                break
        else:
            at += 1
    return frozenset(found)


def _counts_alone(word: str, telling: list[str], aside: bool) -> bool:
    if word not in telling:
        return len(telling) == 0
    if aside and telling[0] == word:
        return True
    return len(telling) <= 2 or (len(telling) <= 4 and telling[-1] == word)
