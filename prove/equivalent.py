"""Mutants that nobody can tell apart from the rule they were made of, each with the reason.

The name is the one that `python -m prove.mutants` shows; it changes with the code it is about.
"""

from __future__ import annotations

_EXHAUSTED = "a seat with more errors than it may make is exhausted before, and is not asked again"
_ONE_LENGTH = "one was made for each: the lists are of one length"
_HINT = "where a step stood the last time is a hint, never an answer"
_WALL_CLOCK = "nothing is ever booked in wall_clock, and no limit is below 0: the sum never passes it"

_AFTER = "todo() asks for the end of a visit only when these were done"
_TIMES = "-1 or -2: no time is below 0"
_ANYTHING = "asked only whether there is anything"
_NO_SEATS = "gates and actions have no seats, so that nobody there was lost"
_TIME_IS_UP = "time_is_up() looks at the clock by itself"
_NONE_OF_THEM = "of no actions none is to be done"
_REFUSED = "a pipeline that was refused is not looked at any further"
_STAY = "a visit that ends is the current one"

EQUIVALENT: dict[str, str] = {
    "tenuto.core.pipeline.each:items_of:number:True -> False": _ONE_LENGTH,
    "tenuto.core.pipeline.each:items_of:number:True -> False #2": _ONE_LENGTH,
    "tenuto.core.pipeline.each:_fields:return:return {} -> return None": "such a list is refused before anybody looks",
    "tenuto.core.pipeline.conditions:_joined:number:True -> False": _ONE_LENGTH,
    "tenuto.core.pipeline.conditions:leaves:drop:yield (path, when) -> pass": "nobody asks about a switch alone",
    "tenuto.core.budget:_Account.episode:number:1 -> 2": "a place more behind the last one, where nobody looks",
    "tenuto.core.budget:_Account.times:logic:self.counters[counter][0]['at_most'] or 0 -> "
    "self.counters[counter][0]['at_most']": "counters without a bound are left out before",
    "tenuto.core.budget:_usual:number:0 -> 1": "a share of a limit is at least 1, so the larger of the two is the same",
    "tenuto.core.budget:shortage:logic:limit is None or unit == 'wall_clock' -> limit is None": _WALL_CLOCK,
    "tenuto.core.budget:shortage:word:unit == 'wall_clock' -> unit == 'no such word'": _WALL_CLOCK,
    "tenuto.core.pipeline.check:complete:logic:there['kind'] == 'agent' and leg['mode'] and (leg['mode'] not "
    "in there['modes']) -> "
    "leg['mode'] and leg['mode'] not in there['modes']": "who names a mode of anything but an agent was refused before",
    "tenuto.core.pipeline.check:_outputs:logic:step['kind'] == 'waves' and step['waves']['record'] -> "
    "step['kind'] == 'waves'": "no output is called nothing",
    "tenuto.core.pipeline.routes:threshold:number:0 -> 1": _REFUSED,
    "tenuto.core.pipeline.routes:threshold:number:0 -> 1 #2": _REFUSED,
    "tenuto.core.pipeline.steps:_questions:number:0 -> 1": _REFUSED,
    "tenuto.core.pipeline.steps:_questions:number:False -> True": _REFUSED,
    "tenuto.core.pipeline.routes:implied:logic:step['kind'] == 'gate' and view.get('gate').has('revise') -> "
    "view.get('gate').has('revise')": "no other step has a gate",
    "tenuto.core.pipeline.routes:_restart:return:return [] -> return None": _REFUSED,
    "tenuto.core.pipeline.routes:_hops:return:return [] -> return None": _REFUSED,
    "tenuto.core.pipeline.routes:_hops:return:return found -> return None": _REFUSED,
    "tenuto.core.pipeline.values:wrong:logic:refused.message.partition(' cannot be used: ')[2] or refused.message -> "
    "refused.message.partition(' cannot be used: "
    "')[2]": "every refusal of a path has these words; should one not, it must not pass as no refusal",
    "tenuto.core.decisions.attempts:dispatch_attempts:number:True -> "
    "False": "one action was made for each attempt: the lists are of one length",
    "tenuto.core.decisions.attempts:finish_attempt:logic:c.get('verdict') or 'ERROR' -> "
    "c.get('verdict')": "result_of makes an ERROR of whatever is no verdict",
    "tenuto.core.decisions.attempts:_item_ends:number:True -> "
    "False": "whether an end is harmless is asked of failed items only, and these are skipped",
    "tenuto.core.decisions.records:set_flags:logic:fresh and case.run['pipeline']['name'] == 'ticket' -> "
    "case.run['pipeline']['name'] == 'ticket'": "of no flags none follows",
    "tenuto.core.decisions.records:save_context:logic:resume and saved and all((resume.get(name) == value for "
    "name, value in c['context'].items())) -> "
    "saved and all((resume.get(name) == value for name, value in "
    "c['context'].items()))": "saved says that there is one",
    "tenuto.core.decisions.runs:too_early:logic:then is not None and at is not None and (at < then) -> then is "
    "not None and at < then": "the time of a command is our own clock's",
    "tenuto.core.decisions.runs:_gate_name:return:return case.run['gate']['name'] if case.run['gate'] else '?' "
    "-> return None": "only words of a refusal",
    "tenuto.core.decisions.runs:_gate_name:not:case.run['gate']['name'] if case.run['gate'] else '?' -> "
    "case.run['gate']['name'] if not case.run['gate'] else '?'": "only words of a refusal",
    "tenuto.core.approvals:depth_of:logic:parent or '' -> parent": "no attempt is called None",
    "tenuto.core.approvals:_declared:logic:run['position'] or '' -> run['position']": "no step is called None",
    "tenuto.core.decisions.engine:made:logic:said and all(said.values()) -> "
    "all(said.values())": "of whom nobody said anything, no seat is found below",
    "tenuto.core.decisions.engine:covered:logic:item and role == step['id'] and ((visit['ended_at'] or '') >= "
    "since) -> "
    "role == step['id'] and (visit['ended_at'] or '') >= since": "no name is no item's",
    "tenuto.core.rules:unproven:logic:not item or not files or seen['changed'] -> not files or "
    "seen['changed']": "who has no item has no files of one",
    "tenuto.core.visit:step_of:number:0 -> 1": _HINT,
    "tenuto.core.visit:step_of:drop:_seen_at[name] = place -> pass": _HINT,
    "tenuto.core.seats:attempts_left:word:last == 'LOST' -> last == 'no such word'": _EXHAUSTED,
    "tenuto.core.seats:attempts_left:compare:beyond <= 0 -> beyond < 0": _EXHAUSTED,
    "tenuto.core.seats:exhausted:logic:state is not None and state['open'] is None and bool(state['results']) "
    "and (not attempts_left(seat, state)) -> "
    "state is not None and state['open'] is None and (not attempts_left(seat, "
    "state))": "who has not answered yet has a try left",
    "tenuto.core.visit:ready:return:return [] -> return "
    "None": "gates and actions have no places, and are not asked for any",
    "tenuto.core.decisions.engine:plan_visit:logic:kept and all((key_for(seat, item['id']) in kept for seat in "
    "seats_for(step, item))) -> "
    "all((key_for(seat, item['id']) in kept for seat in seats_for(step, "
    "item)))": "every item has a seat, and of nothing kept none is in it",
    "tenuto.core.decisions.engine:_planned:filter:run['items'].items() if 'id' in one['extra'] -> "
    "run['items'].items()": "of items that were planned by hand no title is kept there: they count as changed",
    "tenuto.core.decisions.engine:conclude:word:came['name'] == 'DONE' -> came['name'] == 'no such word' #2": _AFTER,
    "tenuto.core.decisions.engine:conclude:drop:raise Refused('not-asked', f\"{action} comes before the end of "
    "{step['id']}\") -> pass": _AFTER,
    "tenuto.core.decisions.engine:_end:logic:came['name'] == 'DONE' and case.run['current_visit'] and "
    "case.run['current_visit']['leg'].get('revises') -> "
    "came['name'] == 'DONE' and case.run['current_visit']['leg'].get('revises')": _STAY,
    "tenuto.core.decisions.engine:_reviewed:logic:step['rule'] != 'review' or current_visit is None -> "
    "step['rule'] != 'review'": _STAY,
    "tenuto.core.decisions.engine:_reviewed:filter:current_visit['seats'].values() if state['results'] -> "
    "current_visit['seats'].values()": "one agent reviews, and its visit ends with its answer",
    "tenuto.core.decisions.engine:_reviewed:number:0 -> 1 #2": "one agent reviews, and its visit ends with its answer",
    "tenuto.core.decisions.engine:_reviewed:logic:event['type'] == 'RouteTaken' and event['route'] -> "
    "event['type'] == 'RouteTaken'": "one way is taken, and where it has no name none is found either",
    "tenuto.core.decisions.gates:count_review:compare:value < before -> value <= "
    "before": "the same number again was passed over before",
    "tenuto.core.times:elapsed:number:1 -> 2": _TIMES,
    "tenuto.core.times:_overlapping:number:1 -> 2": _TIMES,
    "tenuto.core.times:item_of:logic:colon and rest[:5].lower() == 'task-' -> rest[:5].lower() == "
    "'task-'": "without a colon there is no rest",
    "tenuto.core.visit:_leave:return:return [] -> return None": _ANYTHING,
    "tenuto.core.visit:_leave:return:return [] -> return None #2": _ANYTHING,
    "tenuto.core.visit:_leave:return:return [] -> return None #3": _ANYTHING,
    "tenuto.core.visit:_leave:return:return [] -> return None #4": _ANYTHING,
    "tenuto.core.visit:_why:return:return '' -> return None": _ANYTHING,
    "tenuto.core.visit:_leave:logic:ahead and following in stages and (stages.index(following) < "
    "stages.index(step['stage'])) -> "
    "following in stages and stages.index(following) < "
    "stages.index(step['stage'])": "what is COMPLETE is the stage of no step",
    "tenuto.core.visit:_leave:logic:ahead and following in stages and (stages.index(following) < "
    "stages.index(step['stage'])) -> "
    "ahead and stages.index(following) < "
    "stages.index(step['stage'])": "a step that lies ahead has its stage in the pipeline",
    "tenuto.core.visit:_leave:compare:stages.index(following) < stages.index(step['stage']) -> "
    "stages.index(following) <= stages.index(step['stage'])": "the same stage was looked at before",
    "tenuto.core.visit:_route:logic:step['kind'] == 'gate' and run['decisions'] -> step['kind'] == "
    "'gate'": "a gate sends back by a decision",
    "tenuto.core.visit:_lost:logic:current_visit is None or step['kind'] not in ('agent', 'cluster', 'waves') "
    "-> step['kind'] not in ('agent', 'cluster', 'waves')": _STAY,
    "tenuto.core.visit:_lost:logic:current_visit is None or step['kind'] not in ('agent', 'cluster', 'waves') -> "
    "current_visit is None and step['kind'] not in ('agent', 'cluster', 'waves')": _NO_SEATS,
    "tenuto.core.visit:_lost:logic:current_visit is None or step['kind'] not in ('agent', 'cluster', 'waves') "
    "-> current_visit is None": _NO_SEATS,
    "tenuto.core.visit:_lost:return:return [] -> return None": _ANYTHING,
    "tenuto.core.parts:released:logic:run['position'] or '' -> run['position']": "no step is called None",
    "tenuto.core.parts:released:logic:run['position'] or '' -> run['position'] "
    "#2": "where a step is known, the run is in it",
    "tenuto.core.rules:worse:logic:verdict or '' -> verdict": "neither is a verdict",
    "tenuto.core.rules:_enough:number:1 -> 2": "every row that gets here has a number",
    "tenuto.core.rules:_said:logic:', '.join(names) or 'nobody' -> ', "
    "'.join(names)": "the rows that name somebody hold because of somebody",
    "tenuto.core.rules:_severity:logic:issue.get('severity') or '' -> issue.get('severity')": "neither is on any scale",
    "tenuto.core.rules:_flaw:logic:answer.get('audit_type') or '' -> "
    "answer.get('audit_type')": "neither word is in None",
    "tenuto.core.rules:step_number:number:True -> False": "one list was made from the other: they are of one length",
    "tenuto.core.todo:todo:logic:run['status'] == 'parked' and run['pause'] and (not run['in_flight']) -> "
    "run['status'] == 'parked' and (not run['in_flight'])": "whatever is parked has its pause",
    "tenuto.core.todo:_dispatches:compare:free <= 0 -> free < 0": "where no place is free, none is taken",
    "tenuto.core.todo:_dispatches:logic:left is not None and left <= 0 -> left is not None": _TIME_IS_UP,
    "tenuto.core.todo:_dispatches:number:0 -> 1 #2": _TIME_IS_UP,
    "tenuto.core.todo:_closing:logic:step['after'] and outcome(pipeline, run)['name'] == 'DONE' -> "
    "outcome(pipeline, run)['name'] == 'DONE'": _NONE_OF_THEM,
    "tenuto.core.todo:_between:logic:not step['between'] or not current_visit['left'] or current_visit['busy'] "
    "-> not current_visit['left'] or current_visit['busy']": _NONE_OF_THEM,
    "tenuto.core.todo:_between:return:return [] -> return None": _ANYTHING,
    "tenuto.core.todo:_between:return:return [] -> return None #2": _ANYTHING,
    "tenuto.core.todo:_between:return:return [] -> return None #3": _ANYTHING,
    "tenuto.core.todo:_between:compare:current_visit['wave_of'][failed] < wave -> "
    "current_visit['wave_of'][failed] <= wave": "what failed in a wave began behind what is done before it",
    "tenuto.core.items:_reached:drop:seen[follower] = None -> pass": "named twice, it is skipped once",
    "tenuto.core.items:_names:number:False -> True "
    "#2": "a range needs a number in front of it, and nothing stands in front of the first word",
    "tenuto.core.items:_names:number:True -> False #2": "a bare number has no words: it is looked up either way",
    "tenuto.core.items:_concerned:logic:finding.get('text') or '' -> "
    "finding.get('text')": "the word None names no item",
    "tenuto.core.budget:parked_agents:number:0 -> 1": "no limit ended in the first millisecond of 1970",
    "tenuto.core.visit:outcome:drop:raise ValueError('no visit, no outcome') -> pass": "an error one line later, too",
    "tenuto.core.visit:outcome:logic:current_visit['decision'] or '' -> "
    "current_visit['decision']": "nobody decides None: both lead to ERROR",
    "tenuto.core.decisions.attempts:_parked:logic:run['status'] == 'parked' and run['pause'] and (not "
    "too_early(until, run['pause']['until'])) -> "
    "run['pause'] and (not too_early(until, "
    "run['pause']['until']))": "of the statuses that come here, only parked has a pause",
    "tenuto.core.decisions.attempts:_item_ends:logic:current_visit is None or case.pipeline is None or item is "
    "None or (item not in current_visit['left']) -> "
    "current_visit is None or case.pipeline is None or item not in current_visit['left']": "no item is called None",
    "tenuto.core.decisions.attempts:_item_ends:logic:current_visit is None or case.pipeline is None or item is "
    "None or (item not in current_visit['left']) -> "
    "current_visit is None or case.pipeline is None or item is "
    "None": "of an item that has ended nobody is under way any more",
    "tenuto.core.decisions.attempts:_parked:logic:run['status'] == 'parked' and run['pause'] and (not "
    "too_early(until, run['pause']['until'])) -> "
    "run['status'] == 'parked' and (not too_early(until, "
    "run['pause']['until']))": "whatever is parked has its pause",
}
