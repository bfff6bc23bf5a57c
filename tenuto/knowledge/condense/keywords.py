"""How a line of code begins: the words and signs by which languages declare things.

    opens_type, opens_function, opens_namespace, opens_constant, is_import, is_comment, is_attribute

Rules: what stands before a declaration (public, export, async) is taken off first; then the first word
decides, and only where languages declare without a word of their own (`int f(x)`, `f :: a`, `f = (x) => y`)
a pattern does. Words that are also ordinary names (type, data, model) count only before a name.
"""

from __future__ import annotations

from tenuto.knowledge.patterns import pattern

_BEFORE = set(
    """export default declare public private protected internal fileprivate static final abstract sealed open inline readonly
    partial async unsafe virtual override pub inner local required mut native synchronized constexpr consteval friend
    explicit suspend tailrec infix external mutating nonmutating convenience indirect lateinit noncomputable opaque
    comptime mutable expect actual extern typedef volatile new global""".split()
)
# These are put before a declaration only if one of these follows.
_BEFORE_SOME = {
    "const": {"fn", "enum", "unsafe", "async"},
    "enum": {"class", "struct"},
    "data": {"class", "object"},
    "value": {"class"},
    "case": {"class", "object"},
    "annotation": {"class"},
    "record": {"class", "struct"},
    "fun": {"interface"},
    "module": {"type"},
    "abstract": {"type"},
    "operator": {"fun"},
    "companion": {"object"},
    "extend": {"type", "input", "schema", "interface", "enum"},
}
_TYPES = set(
    """class interface struct enum union trait protocol record type newtype message service oneof input scalar schema model
    object actor extension typealias alias data contract event error delegate @interface entity table exception concept
    subtype mixin defstruct defexception directive associatedtype""".split()
)
_NAMESPACES = {
    "namespace",
    "module",
    "mod",
    "impl",
    "defmodule",
    "package",
    "library",
    "functor",
    "signature",
    "instance",
}
_FUNCTIONS = set(
    """function function* func fn fun def defp defmacro defmethod sub proc procedure subroutine method rpc macro modifier lemma
    theorem task""".split()
)
_BUILDERS = {"constructor", "init", "init?", "deinit", "destructor", "fallback", "receive"}
_STATEMENTS = set(
    """return else elif if for foreach while switch match case catch except finally try with when unless until do throw raise
    await yield delete goto assert import from package using use require include go defer print echo puts super self this
    not and or in is select insert update begin end pass break continue expect move ref guard loop""".split()
)
# A method may have one of the other names above, never one of these.
_CONTROL = {
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "return",
    "else",
    "elif",
    "throw",
    "foreach",
    "with",
    "match",
    "await",
}
_IMPORTS = {
    "import",
    "using",
    "use",
    "require",
    "include",
    "#include",
    "package",
    "open",
    "library",
    "alias",
    "source",
    "syntax",
}
_FORM_STARTS = (
    "TypedDict NamedTuple namedtuple NewType TypeVar Enum( Union Optional Literal Annotated Callable dict[ list[ tuple[ Dict["
    " List[ Mapping[ Sequence[ Struct.new Data.define Class.new z. t. yup. Joi. Type. S. v. struct union enum opaque"
).split()
_SQL_TYPES = {"table", "type", "view", "index", "domain", "schema", "enum", "extension", "policy", "sequence"}
_SQL_FUNCTIONS = {"function", "procedure", "trigger", "aggregate"}
_SQL_ASIDES = {"or", "replace", "unique", "temp", "temporary", "materialized", "if", "not", "exists"}

_WORD = pattern(r"[@#]?[A-Za-z_][\w]*[*?]?")
_TEMPLATE = pattern(r"^template\s*<[^{;]*>\s*(?=\S)")
# One or more attributes before a declaration on the same line.
_ATTRIBUTE_BEFORE = pattern(
    r"(?:(?:@(?!interface|spec|type|opaque|callback)[A-Z][\w.]*(?:\([^()]*\))?|#!?\[[^\]]*\]|\[[A-Z][^\]]*\])\s+)+(?=\w)"
)
_NAMED = pattern(r"(?:<[^>]*>\s*)?(?:\([^)]*\)\s*)?[\w$.:~`'\"]")
_FORM = pattern(r"(?:(?:const|let|var)\s+)?[A-Za-z]\w*\s*(?::\s*TypeAlias\s*)?=\s*(\S+)")
_UNION = pattern(r"[A-Z]\w*\s*=\s*(?:[A-Z]\w*(?:\[.*\])?|[\"']\w+[\"'])\s*\|")
_TYPE_SIGNS = ("@type ", "@typep ", "@opaque ", "@callback ", "-type ", "-record(", "-opaque ")
_LISP_TYPES = ("(defstruct", "(defrecord", "(defprotocol", "(deftype", "(s/def", "(struct ")
_LISP_FUNCTIONS = ("(defn", "(defun ", "(define ", "(defmacro ", "(defmulti ", "(defmethod ", "(declaim ")
_VERBS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY", "WS", "SSE"}

_ASSIGNED_FUNCTION = pattern(r"[\w.]+\s*(?:<-|=)\s*(?:async\s+)?function\b")
_OBJECTIVE_C = pattern(r"[-+]\s*\([^)]+\)\s*\w")
_TYPE_BELOW = pattern(r"[a-z_][\w']*(?:\s*,\s*[a-z_][\w']*)*\s+::\s+\S|[a-z_][\w']*\s+:\s+\S.*->")
_LET = pattern(r"let\s+(?:rec\s+|inline\s+|private\s+)*[a-z_]\w*'?\s+(?:\(|[a-z_]\w*\s.*=|[a-z_]\w*\s*=)")
_VAL = pattern(r"(?:val|external)\s+[a-z_]\w*'?\s*:(?!.*=)")
_ARROW = pattern(
    r"(?:(?:const|let|var|val)\s+)?[\w$.#]+\s*(?::[^=]*(?:=>[^=]*)?)?=\s*"
    r"(?:async\s+)?(?:function\b|(?:<[^>]*>\s*)?\(|\w+\s*=>|(?:React\.)?(?:memo|forwardRef|useCallback)\b|lambda\b)"
)
_DECLARED = pattern(r"const\s+\w+\s*:[^=]*(?:=>|<)[^=]*;?$")
_CALLED = pattern(r"(?:get\s+|set\s+|\*\s*)?[\w$#~]+[?!]?\s*(?:<[^()]*>)?\(")
_TYPED = pattern(
    r"(?:\[\[[^\]]*\]\]\s*)?(?:(?:const|unsigned|signed|struct|enum|long|short|auto)\s+|<[^>]+>\s*)*"
    r"[A-Za-z_][\w.:]*(?:<[^()=;]*>)?(?:\[\])*[?*&]*\s+[*&]*(?:[A-Za-z_~][\w:~]*|operator\S+)\s*(?:<[^()]*>)?\("
)
_PSEUDO = pattern(r"[\w.$:#]+\s*(?:<[^()]*>)?\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:->|→|=>|⇒|:|returns\b)\s*\S")
_CONSTANT = pattern(
    r"(?:(?:const|final|static|val|var|let|int|char|double|float|long|bool)\s+)+(?:[\w<>:*&\[\]]+\s+)?\*?[A-Z]\w*\b"
    r"|[A-Z][A-Z0-9_]+\s*(?::[^=]+)?=(?!=)|(?:const|var|type)\s*\($|@[a-z_]+\s+[\[\d%\"{~:]|\(def\s|#define\s+\w|var\s+Err"
)
_PARAMETERS = pattern(r"\w[?!]?(?:<[^>]*>|\[[^\]]*\])?\((?:.*\)|$)")
_COMPLETE = pattern(r"\)\s*(?:const|noexcept|override)?\s*[;{]$")
_COMMENT = pattern(
    r"//|#(?![\[!]|define|include|if|end)|--(?!\w)|;;|\*(?:\s|/|$)|/\*|\(\*|\{-|<!--|%%|'''|\"\"\"|REM\b"
)
_ATTRIBUTE = pattern(r"@[A-Za-z][\w.:]*(?:\(|$|\s)|#!?\[|\[[A-Z]\w*(?:[(\],]|$)|\[\[|template\s*<[^{;]*>$")
_TEST = pattern(r"(?:[Ii]t|[Tt]est|[Dd]escribe|context|scenario|specify|should)(?:\.\w+)*\s*\(?\s*[\"'`]")


def undressed(line: str) -> str:
    """A line without indentation and without what only qualifies its declaration."""
    text = _TEMPLATE.sub("", line.strip())
    if text[:1] in {"@", "#", "["} and (attribute := _ATTRIBUTE_BEFORE.match(text)):
        text = text[attribute.end() :]
    while text:
        word, _, rest = text.partition(" ")
        bare = word.partition("(")[0] if word.startswith("pub(") else word
        follows = _BEFORE_SOME.get(bare)
        if (follows and (rest.lstrip().split("(")[0].split() or [""])[0] in follows) or (
            bare in _BEFORE and rest.strip() and rest.lstrip()[0] not in "=(:"
        ):
            text = rest.lstrip()
        else:
            break
    return text


def first_word(text: str) -> str:
    found = _WORD.match(text)
    return found.group() if found else ""


def is_statement(text: str, inside: bool = False) -> bool:
    """`inside` a type, a method may be called delete or update."""
    word = first_word(text)
    if word not in _STATEMENTS:
        return False
    return not (inside and word not in _CONTROL and text[len(word) :].lstrip()[:1] in {"(", "<"})


def opens_type(line: str) -> bool:
    stripped = line.strip()
    text = undressed(line)
    word = first_word(text)
    if word in _TYPES:
        rest = text[len(word) :].lstrip()
        return word == "defstruct" or (
            rest[:1] not in {"=", "(", ".", "+", ",", ";", ")", "[", "-", "*"} and not rest.startswith(": ")
        )
    if stripped.startswith("typedef ") or (stripped.startswith("using ") and "=" in stripped):
        return True
    if stripped.startswith(_TYPE_SIGNS) or stripped.startswith(_LISP_TYPES):
        return True
    if word.lower() in {"create", "alter"}:
        return _sql_noun(text) in _SQL_TYPES
    if form := _FORM.match(text):
        return form.group(1).startswith(tuple(_FORM_STARTS)) or bool(_UNION.match(text))
    return False


def _sql_noun(text: str) -> str:
    nouns = [word for word in text.lower().split()[1:6] if word not in _SQL_ASIDES]
    return nouns[0] if nouns else ""


def opens_namespace(line: str) -> bool:
    text = undressed(line)
    word = first_word(text)
    if word not in _NAMESPACES and not text.startswith('"C"'):
        return False
    head = text.partition("{")[0]  # behind it stands what is inside, where all is on one line
    if "=" in head or ";" in head or text[len(word) :][:1] in {".", "("}:
        return False
    return word != "package" or "{" in text


def opens_function(line: str, bare: str, inside: bool, generous: bool) -> bool:
    """`bare` is the line without the insides of strings and comments."""
    text = undressed(line)
    word = first_word(text)
    if (
        word in _FUNCTIONS
        and _NAMED.match(text[len(word) :].lstrip())
        and not text[len(word) :].lstrip().startswith(": ")
    ):
        return True
    if _has_function_form(text, word):
        return True
    if is_statement(text, inside):
        return False
    return _looks_like_function(undressed(bare), inside, generous)


def _has_function_form(text: str, word: str) -> bool:
    if word in _BUILDERS:
        return text[len(word) :].lstrip()[:1] in {"(", "<", "{"}
    if text.startswith(("@spec ", "-spec ", "-callback ")) or text.startswith(_LISP_FUNCTIONS):
        return True
    if word in _VERBS:
        return text[len(word) :].lstrip()[:1] in {"/", "{", ":", "h"}
    if word.lower() == "create":
        return _sql_noun(text) in _SQL_FUNCTIONS
    if word in {"Function", "Sub"}:
        return "(" in text
    if word in {"let", "val", "external", "const"}:
        return bool({"let": _LET, "const": _DECLARED}.get(word, _VAL).match(text))
    if text[:1] in {"-", "+"}:
        return bool(_OBJECTIVE_C.match(text))
    if "function" in text and _ASSIGNED_FUNCTION.match(text):
        return True
    return ("::" in text or " : " in text) and bool(_TYPE_BELOW.match(text))


def _looks_like_function(text: str, inside: bool, generous: bool) -> bool:
    if _ARROW.match(text):
        return "=>" in text or "function" in text or text.endswith(("(", ",")) or inside or "lambda" in text
    if _PSEUDO.match(text):
        return True
    before = text.split("(", 1)[0]
    if "=" in before and "operator" not in before:
        return False
    if _TYPED.match(text):
        return True
    return (inside or generous) and bool(_CALLED.match(text)) and text[0] not in ".@"


def opens_constant(line: str) -> bool:
    text = line.strip()
    return bool(_CONSTANT.match(text) or _CONSTANT.match(undressed(line))) and not is_statement(text)


def is_import(line: str) -> bool:
    text = line.strip()
    return first_word(text) in _IMPORTS or (text.startswith("from ") and " import" in text)


def is_comment(line: str) -> bool:
    return bool(_COMMENT.match(line.strip()))


def is_attribute(line: str) -> bool:
    text = line.strip()
    return (
        bool(_ATTRIBUTE.match(text))
        and not text.startswith(("@spec ", *_TYPE_SIGNS))
        and not text.startswith("@interface")
    )


def names_test(line: str) -> bool:
    return bool(_TEST.match(line.strip()))


def is_declaration(text: str) -> bool:
    """A line of prose that is a declaration all the same: stricter, it needs a declaration's signs."""
    text = text.strip()
    if len(text) > 300 or not any(sign in text for sign in "{(;=:") or is_statement(text):
        return False
    if opens_type(text):
        return text[-1] in "{;:(" or " = " in text or ("{" in text and "}" in text)
    bare = undressed(text)
    word = first_word(bare)
    if (word in _FUNCTIONS or _has_function_form(bare, word)) and "(" in text:
        return bool(_PARAMETERS.search(text)) and not text.endswith((".", "?"))
    typed = _TYPED.match(bare) and _COMPLETE.search(text)
    return bool(typed) or bool(_ARROW.match(bare) and "=>" in text)
