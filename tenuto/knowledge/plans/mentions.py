"""One place in a plan that speaks about an item, and the words and small notations found there.

A plan names an item several times: in an index table, in a list under its wave, under a heading of its own, in a
file. Each is a Mention, with exactly what stands in that place; merge.py puts the mentions of one item together.

    role_of_column("Depends On")           "depends"      one of its words says so
    role_of_label("Files to modify")       "files"        all of its words say so
    role_of_label("Output format")         ""             a label of which we know only a part is not ours
    split_id("Task 3: Parser")             ("3", "Parser")
    files_in("`src/a.py`, b.md (new)")     the files that a cell or a label's value names

One table holds the words, in the languages in which plans were seen. A word that is not in it is not guessed: the
line is left alone, and `tenuto plan --explain` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from tenuto.knowledge.markdown import link_targets, plain

Kind = Literal["table", "list", "heading", "file", "note", "data"]


class Dependency(NamedTuple):
    """What one place says that an item waits for, in the plan's own words."""

    text: str
    line: int
    weak: bool = False  # "needs", "after": it counts only where it names an item
    table: int = 0  # the line at which its table begins
    inherited: bool = False  # said of a whole wave


@dataclass
class Mention:
    id: str  # as written; empty where only a title is given
    title: str
    kind: Kind
    block: int  # the line at which its table, list or section begins
    line: int
    stem: str = ""  # of a linked or own file
    depends: list[Dependency] = field(default_factory=list)
    blocks: list[Dependency] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    file_count: int | None = None
    agent: str | None = None
    wave: str | None = None
    group: str | None = None  # phase, stage and the like that it stands under
    effort: str | None = None
    lines: int | None = None
    description: str = ""
    text: str = ""  # of the item's own file
    dropped: str = ""  # why it is not to be done
    ticked: bool = False


# ---- words -----------------------------------------------------------------------------------------

# The order is that of precedence. "~word": a column's heading needs to contain it; otherwise it must be it.
_WORDS: dict[str, str] = {
    "foreign": (
        "~failure ~likelihood ~mitigation ~mitigations ~criterion ~severity ~probability ~covered_by ~test_id "
        "~test_name ~pair ~wahrscheinlichkeit ~probabilidad ~probabilité"
    ),
    "amount": "~number_of ~count ~counts ~how_many ~#_of ~anzahl ~num ~total",
    "ignored": "~read ~reads ~not ~read_only ~conflicts",
    "blocks": "blocks unblocks dependents downstream ~required_by ~needed_by blockiert bloquea bloque",
    "depends": (
        "~depends ~depend ~dependency ~dependencies ~deps ~dep ~blocked_by ~blockers ~prerequisite ~prerequisites "
        "~prereq ~prereqs ~predecessor ~predecessors ~abhängig ~abhängigkeit ~abhängigkeiten ~hängt_ab "
        "~voraussetzung ~voraussetzungen ~dépend ~dépendances ~dependencias ~depende ~dependências ~dipende "
        "~dipendenze ~blockiert_von ~bloqueada_por ~bloqueado_por ~bloquée_par ~bloqué_par ~зависит ~зависимости "
        "~依赖 ~依赖于 ~依赖项 ~前置 ~前置任务 ~依存 ~依存関係 ~의존"
    ),
    "after": (
        "~requires ~require ~needs ~need ~after ~waits_for ~wait_for ~waits_on ~follows ~comes_after ~come_after "
        "~nach ~braucht ~benötigt ~después_de ~necesita ~requiere ~après ~nécessite ~depois_de ~precisa_de ~dopo "
        "~после"
    ),
    "id": (
        "# no nr n° nº № num number id task_id task_# task_no task_nr task_number item_id item_# key ref ticket "
        "issue nummer número numéro 编号 番号"
    ),
    "task": (
        "task item work_item todo task_name task_title task_description aufgabe tarea tâche tarefa attività "
        "задача 任务 タスク 작업"
    ),
    "tasks": "tasks items task_ids created_by modified_by used_by plan_task plan_tasks aufgaben tareas tâches tarefas",
    "ordinal": "step phase stage schritt paso étape etapa fase 阶段 步骤",
    "wave": "wave waves wave_# execution_wave batch parallel_group welle ola oleada vague onda ondata волна 波次 波",
    "agent": "agent assigned_agent task_agent subagent agent_type assigned_to agente агент",
    "status": "status state zustand estado statut stato 状态 статус",
    "lines": "~lines ~loc zeilen líneas lignes",
    "files": (
        "~file ~files path paths file_path file_paths output outputs touch touches modify modifies create creates "
        "owns artifact artifacts deliverable deliverables target targets location locations datei dateien archivo "
        "archivos fichero ficheros fichier fichiers arquivo arquivos файл файлы 文件 ファイル 파일"
    ),
    "effort": "effort complexity size scope estimate estimated_scope aufwand esfuerzo esforço 工作量",
    "title": "title name summary feature component titel título titre",
    "description": (
        "description details detail objective goal changes change responsibility what beschreibung descripción"
    ),
}
# What may stand before and behind a label's word without making it another label.
_BEFORE = "target output key new modified estimated est max task assigned execution production affected".split()
_BEHIND = (
    "likely touched to modify create change touch edit update modified created changed affected owned of code on upon "
    "de von от"
).split()
# A label stands in running text: there some words mean something else than at the head of a column.
_NO_LABEL = ("foreign", "amount", "ignored", "task", "tasks", "ordinal")
_NOT_AS_LABEL = (
    "waves # no key ref name what feature component state num number change changes scope batch issue ticket"
).split()

WAVE = "wave|welle|ola|oleada|vague|onda|ondata|волна|波次|波|ウェーブ"
GROUP = "phase|stage|batch|sprint|milestone|iteration|fase|etapa|étape|этап|阶段|フェーズ|단계"
TASK = "task|item|todo|aufgabe|tarea|tâche|tarefa|attività|задача|任务|タスク|작업"


@lru_cache(1)
def _table() -> tuple[dict[str, str], list[tuple[str, str]]]:
    exact: dict[str, str] = {}
    within: list[tuple[str, str]] = []
    for role, words in _WORDS.items():
        for word in words.split():
            phrase = word.removeprefix("~").replace("_", " ")
            exact.setdefault(phrase, role)
            if word.startswith("~"):
                within.append((phrase, role))
    return exact, within


def words_of_label(text: str) -> list[str]:
    bare = re.sub(r"[(（][^)）]*[)）]", " ", plain(text).casefold().replace("(s)", "s"))
    return re.sub(r"[^\w#°№ºª]+|_", " ", bare).split()


def role_of_column(heading: str) -> str:
    exact, within = _table()
    phrase = " ".join(words_of_label(heading))
    order = list(_WORDS)
    found = [role for word, role in within if f" {word} " in f" {phrase} "]
    found += [exact[phrase]] if phrase in exact else []
    return min(found, key=order.index) if found else ""


def role_of_label(label: str) -> str:
    words = words_of_label(label)
    if not 0 < len(words) <= 6:
        return ""
    exact, _ = _table()
    first, last = 0, len(words)
    while True:
        phrase = " ".join(words[first:last])
        role = exact.get(phrase, "")
        if role and role not in _NO_LABEL and phrase not in _NOT_AS_LABEL:
            return role
        if last - first > 1 and words[last - 1] in _BEHIND:
            last -= 1
        elif last - first > 1 and words[first] in _BEFORE:
            first, last = first + 1, len(words)
        else:
            return ""


_DROPPED = re.compile(
    r"superseded|dropped|cancell?ed|abandoned|obsolete|withdrawn|removed|rejected|deferred|postponed|out of scope|"
    r"won'?t do|wontfix|(?:no longer|not) needed|replaced by|merged into|entfällt|gestrichen|verworfen|descartad[ao]|"
    r"cancelad[ao]|abandonnée?|annulée?|supprimée?|отменен[ао]?|已取消|废弃|取消",
    re.IGNORECASE,
)


def dropped_by_status(value: str) -> bool:
    """`superseded by task-05` as a status."""
    return bool(_DROPPED.match(plain(value).strip(" *_~.:-–—❌🚫✗[(")))


def dropped_by_title(text: str) -> bool:
    """Struck out, `(dropped)` in brackets, or `SUPERSEDED` in capitals. "Remove dropped frames" is work."""
    bare = plain(text).strip()
    if bare.startswith("~~") and "~~" in bare[2:]:
        return True
    if any(_DROPPED.match(inside.strip(" *_")) for inside in re.findall(r"[(\[]([^()\[\]]*)[)\]]", bare)):
        return True
    return any(found.group().isupper() for found in _DROPPED.finditer(bare))


def drops_all(title: str) -> bool:
    """`Dropped tasks`, as the heading of a section."""
    bare = plain(title).strip(" :")
    rest = _DROPPED.match(bare)
    return (bool(rest) and len(bare.split()) <= 4) or bare.casefold() in ("archive", "archived", "archived tasks")


# ---- ids -------------------------------------------------------------------------------------------

# TASK-001, T1, 01, 1.2, W1A, P01-T07, 01-parser, HPC-INT-1, A1.1.b
ID = (
    r"(?:[A-Za-z]{1,12}[-_]?(?:[A-Za-z]{1,8}[-_])?)?\d+[A-Za-z]?"
    r"(?:\.[A-Za-z]{0,2}\d+|\.[a-z]\b|-[A-Za-z]{0,3}\d+)*(?:-[a-z][\w-]*)?"
)
_ORDINAL = re.compile(
    rf"^(?:{TASK}|step|phase)(?:\s*[#:]\s*|\s+|(?<=[任务])\s*)({ID}|(?-i:[A-Z])(?=\s*(?:[:.)—–-]|$)))(?![\w%])"
    rf"\s*[:：.)—–-]*\s*(.*)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(rf"^[#\[(]?({ID})[\])]?(?![\w%/])(?:\s*[:：)—–]\s*|\s+-\s+|\.\s+|\.?$|(\s+))(.*)$")
_SLUG = re.compile(r"^([a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)(?:\s*[:：—–(←⇐]\s*|\s+<?-\s+|\s*$)(.*)$")
_BOX = re.compile(r"^\[[ xX~-]\]\s*")
_TAG = re.compile(r"^\[[^\]]{1,20}\]\s+")


def is_ticked(text: str) -> bool:
    return text.lstrip().startswith(("[x]", "[X]"))


def split_id(text: str) -> tuple[str, str]:
    """`Task 3: Parser` -> ("3", "Parser"). The id is empty where the text begins with none."""
    bare = _BOX.sub("", plain(text)).strip().strip("~").strip()
    while (tag := _TAG.match(bare)) and _begins_with_id(bare[tag.end() :])[0]:
        bare = bare[tag.end() :]  # `[P0] TASK-001: x`
    name, title = _begins_with_id(bare)
    while name and (tag := _TAG.match(title)):
        title = title[tag.end() :]  # `T002 [P] [US1] x`
    return (name, title.strip("~")) if name else ("", bare)


def _begins_with_id(bare: str) -> tuple[str, str]:
    for shape in (_ORDINAL, _NUMBERED, _SLUG):
        found = shape.match(bare)
        if found and not _is_amount(found):
            return found.group(1), (found.group(found.re.groups) or "").strip(" :：—–-")
    return "", bare


def _is_amount(found: re.Match[str]) -> bool:
    """`3 files` begins with an amount, `03 parser` and `T3 parser` with an id."""
    return found.re is _NUMBERED and bool(found.group(2)) and re.fullmatch(r"[1-9]\d*", found.group(1)) is not None


def is_plain_number(name: str) -> bool:
    return bool(re.fullmatch(r"\d+(?:\.\d+)*", name))


def is_marked(text: str) -> bool:
    """Whether a text begins with `Task 3` or with an id that is more than a number."""
    bare = _BOX.sub("", plain(text)).strip()
    if _ORDINAL.match(bare):
        return True
    name, _ = split_id(text)
    return bool(name) and not is_plain_number(name)


# ---- files, numbers --------------------------------------------------------------------------------

_PATH = re.compile(
    r"(?:[\w.@~*{}\[\]-]+/)*[\w.@~*{}\[\]-]*\.[A-Za-z]\w{0,11}|(?:[\w.@~-]+/)+[\w.@~*-]*|Makefile|Dockerfile"
)
_COUNTED = re.compile(r"^\s*(\d+)\s*(?:\(([^)]*)\)|new|modified|files?|changed|created)?", re.IGNORECASE)
_NAME = r"[\w.*{}/-]*[\w*}]\.[A-Za-z]\w{0,11}"
_LEADING = re.compile(rf"^(?:[^\W\d]+\s+)?({_NAME}(?:\s*(?:\+|,|&|/|\band\b)\s*{_NAME})*)(?=\s*(?:$|[—–:(←⇐]|-\s|<-))")


def files_in(cell: str) -> tuple[list[str], int | None]:
    """The files that a cell names, and how many it says there are."""
    counted = _COUNTED.match(plain(cell))
    count = int(counted.group(1)) if counted else None
    if counted and counted.group(2):
        names = [name.strip().split(" ")[0] for name in counted.group(2).split(",")]
        return [name for name in names if name], count
    coded = [code for code in re.findall(r"`([^`]+)`", cell) if _is_path(code)]
    if coded:
        return list(dict.fromkeys(_clean(path) for path in coded)), None
    words = [
        word.strip("()[],;\"'") for word in re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("<br>", " ").split()
    ]
    return list(dict.fromkeys(_clean(word) for word in words if _is_path(word))), count


def files_in_prose(text: str) -> list[str]:
    """Paths in a sentence: in code marks, or with both a folder and an ending."""
    coded = [code for code in re.findall(r"`([^`]+)`", text) if _is_path(code)]
    words = [word.strip("()[],;:\"'.") for word in text.split() if "`" not in word and "/" in word]
    return list(
        dict.fromkeys(
            _clean(path) for path in (*coded, *(w for w in words if _is_path(w) and "." in w.rsplit("/", 1)[-1]))
        )
    )


def files_of_title(title: str) -> list[str]:
    """`Update parser.py + lexer.py — new tokens`: a title that is file names, with at most one word before them."""
    found = _LEADING.match(plain(title))
    return [_clean(name) for name in re.findall(_NAME, found.group(1)) if _is_path(name)] if found else []


def _is_path(text: str) -> bool:
    text = re.sub(r"(?::\d+(?:[-–]\d+)?|#L\d+.*)$", "", text.strip())
    return " " not in text and bool(_PATH.fullmatch(text)) and not re.fullmatch(r"[a-z]\.[a-z]\.?", text)


def _clean(path: str) -> str:
    return re.sub(r"(?::\d+(?:[-–]\d+)?|#L\d+.*)$", "", path.strip()).removeprefix("./")


def largest_number(cell: str) -> int | None:
    """`~120`, `100-150`, `1,200 lines`: the upper end."""
    found = [int(number.replace(",", "")) for number in re.findall(r"\d{1,3}(?:,\d{3})+|\d+", cell)]
    return max(found) if found else None


def amount_in(cell: str) -> int | None:
    """`2`, `~2`: a number and nothing else. `02` is written like an id, and no amount."""
    found = re.fullmatch(r"~?\s*(0|[1-9]\d{0,3})", plain(cell).strip())
    return int(found.group(1)) if found else None


def stem_of(cell: str) -> str:
    """The name of the Markdown file that a cell links to."""
    for target in link_targets(cell):
        name = target.rsplit("/", 1)[-1].partition("#")[0]
        if name.endswith(".md"):
            return name.removesuffix(".md")
    return ""


def value_in(cell: str) -> str | None:
    """What a cell says; None for an empty one or a dash."""
    text = plain(cell)
    return None if text in ("", "-", "–", "—", "?", "TBD", "n/a", "N/A") else text
