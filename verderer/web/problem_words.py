"""What is wrong with a pipeline, in the reader's language.

The core says it in English, with values inside the sentences. Here each sentence is recognised by
its fixed words and said again in another language around the same values; values that are words
themselves ("a mapping") are translated too. A test holds this list against the core's sentences.
"""

from __future__ import annotations

import re
from functools import lru_cache

from verderer.web.language import N_, Language

_SENTENCES = (
    N_("steps need each other in a circle: %(a)s"),
    N_("remove one of these needs"),
    N_("there are two steps called %(a)s; the first is on line %(b)s"),
    N_("with the numbers of its matrix the name becomes %(a)s long, and %(b)s is the limit"),
    N_("shorten the name"),
    N_("%(a)s is also what an instance of %(b)s will be called"),
    N_("rename one of them"),
    N_("the step %(a)s needs itself"),
    N_("remove it"),
    N_("there is no step %(a)s"),
    N_("more than a billion"),
    N_("the steps expand to %(a)s, and %(b)s is the limit"),
    N_("split the work into several pipelines, or loop inside a step"),
    N_("the needs expand to %(a)s pairs of steps, and %(b)s is the limit"),
    N_("put a step that gathers between two steps with a matrix"),
    N_("%(a)s cannot be read: %(b)s"),
    N_("a whole number"),
    N_("true or false"),
    N_("it declares %(a)s"),
    N_("a value has at most %(a)s bytes"),
    N_("declare it with %(a)s or %(b)s if that is what it is"),
    N_("the pipeline declares none"),
    N_("a value cannot contain the character NUL"),
    N_("put larger things into a file that the step reads"),
    N_("expected %(a)s, found %(b)s"),
    N_("there is no parameter %(a)s"),
    N_("it has no default"),
    N_("the parameter %(a)s needs a value"),
    N_("expected the name of a resource, found %(a)s"),
    N_("expected more than 0 of %(a)s, found %(b)s"),
    N_("no node has %(a)s of %(b)s"),
    N_("expected a mapping of resources to quantities, found %(a)s"),
    N_("devices have a domain in their name, such as nvidia.com/gpu"),
    N_("leave %(a)s out to ask for none"),
    N_("check the unit: m is a thousandth, M a million, Mi 1024 times 1024"),
    N_("such as %(a)s"),
    N_("write it as a list: %(a)s"),
    N_("%(a)s has no field %(b)s"),
    N_("expected %(a)s with %(b)s to %(c)s items, found %(d)s"),
    N_("expected %(a)s with %(b)s to %(c)s entries, found %(d)s"),
    N_("%(a)s needs %(b)s"),
    N_("its fields are %(a)s"),
    N_("%(a)s is in the list twice"),
    N_("remove one of them"),
    N_("indent with spaces, and quote texts that begin with @, ` or %"),
    N_("quote a text that contains %(a)s"),
    N_("a key needs a colon and a space after it"),
    N_("a key needs a colon and a space after it, and a text needs quotes"),
    N_("check the indentation, brackets and quotes just above"),
    N_("%(a)s levels are the limit"),
    N_("a quote or a bracket is not closed"),
    N_("it is not YAML"),
    N_("not YAML%(a)s: %(b)s"),
    N_("not YAML: %(a)s"),
    N_("it has more than %(a)s, counting what aliases repeat"),
    N_("%(a)s values"),
    N_("%(a)s characters"),
    N_("a key must be a text, and this is a list or a mapping"),
    N_("the tag %(a)s is not allowed"),
    N_("it is nested more than %(a)s levels deep"),
    N_("an escape in double quotes is not a character"),
    N_("it is empty"),
    N_("%(a)s names an anchor that is not defined"),
    N_("%(a)s stands inside what it names"),
    N_("shorten it, and do not let aliases repeat aliases"),
    N_("a value that begins with %(a)s or %(b)s needs quotes"),
    N_("remove it: every field knows what it expects"),
    N_("a pipeline has %(a)s and %(b)s"),
    N_("%(a)s is given twice; it was first given on line %(b)s"),
    N_("%(a)s merges mappings, and this is not one"),
    N_("a second document begins here"),
    N_("keep one of the two"),
    N_("write %(a)s, where %(b)s marks a mapping"),
    N_("send one pipeline at a time; remove %(a)s and what follows"),
    N_('leave the field out, or write "" for an empty text'),
    N_("a whole number from %(a)s to %(b)s"),
    N_("a text cannot contain the character NUL"),
    N_("a text cannot contain half a character"),
    N_("found %(a)s characters, and %(b)s is the limit"),
    N_("found %(a)s bytes, and %(b)s is the limit"),
    N_("remove the quotes"),
    N_("expected a time from %(a)s s to %(b)s days, found %(c)s"),
    N_("expected a time from %(a)s s to %(b)s days"),
    N_("a text or a number"),
    N_("expected %(a)s, found an empty text"),
    N_("shorten it"),
    N_("put long texts into the image or a file"),
    N_("leave it out for no limit"),
    N_("did you mean %(a)s?"),
    N_("byte %(a)s is not UTF-8"),
    N_("it looks like %(a)s; save the file as UTF-8"),
    N_("another encoding"),
    N_("it is %(a)s long, and %(b)s MiB is the limit"),
    N_("keep data and long programs in the image or in storage"),
    N_("a control character, %(a)s, which YAML does not allow"),
    N_("inside double quotes it can be written as an escape such as %(a)s"),
    N_("values are in the environment, as VERDERER_PARAM_NAME and the like"),
    N_("%(a)s refers to nothing"),
    N_("a step has at most %(a)s references, this one %(b)s"),
    N_("write %(a)s, in quotes: it has the same value"),
    N_("%(a)s would become code of the shell"),
    N_("%(a)s is not closed by %(b)s"),
    N_("for the characters themselves write %(a)s"),
    N_("there are %(a)s"),
    N_("%(a)s is not in %(b)s"),
    N_("add %(a)s to the needs of this step"),
    N_("%(a)s is not a state in which a step ends"),
    N_("expected a condition, found an empty text"),
    N_("a step has %(a)s or %(b)s, and this one has both"),
    N_("the program to run has an empty name"),
    N_("the request of %(a)s %(b)s is more than the limit of %(c)s"),
    N_("raise the limit or lower the request"),
    N_("the request of %(a)s %(b)s is not the limit of %(c)s"),
    N_("nobody shares it, so give one of the two, or the same twice"),
    N_("%(a)s is set by the cluster, so that steps do not see others' devices"),
    N_("ask for devices in %(a)s, such as %(b)s"),
    N_("the step %(a)s cannot read its own output"),
    N_("%(a)s and %(b)s would share one environment variable"),
    N_("keep one of them"),
    N_("a step needs %(a)s or %(b)s"),
    N_("%(a)s is set by Verderer"),
    N_("choose another name; where to log and with which token is set for every step"),
    N_("the inputs %(a)s and %(b)s would be put over each other"),
    N_("give each a path of its own"),
    N_("the step %(a)s has no output %(b)s"),
    N_("declare it in the outputs of %(a)s"),
    N_("put quotes around a text; a value is params.NAME, matrix.NAME or steps.NAME.state"),
    N_("%(a)s is not part of a condition"),
    N_("compare two values at a time, and join comparisons with %(a)s"),
    N_("%(a)s is not expected here"),
    N_("write %(a)s"),
    N_("%(a)s is not a value"),
    N_("a condition has at most %(a)s characters"),
    N_("a text in the condition is not closed"),
    N_("a condition has no %(a)s"),
    N_("the condition ends where a value is expected"),
    N_("there is no function %(a)s"),
    N_("%(a)s is a function"),
    N_("%(a)s needs a condition beside it"),
    N_("a condition has at most %(a)s levels of parentheses"),
    N_("a parenthesis is not closed"),
    N_("%(a)s takes nothing between its parentheses"),
    N_("a mapping"),
    N_("a list"),
    N_("nothing"),
    N_("a text"),
    N_("a parameter"),
    N_("an output"),
    N_("an input"),
    N_("a step"),
    N_("a pipeline"),
    N_("a list of texts"),
    N_("a list of values"),
    N_("a list of steps"),
    N_("a mapping of environment variables"),
    N_("a mapping of inputs"),
    N_("a mapping of outputs"),
    N_("a mapping of names to lists of values"),
    N_("a mapping of parameters"),
    N_("a mapping of labels"),
    N_("a number of retries"),
    N_("a kind of output"),
    N_("a shell script"),
    N_("a condition"),
    N_("a default value or a mapping"),
    N_("a label's name"),
    N_("a label's value of letters, digits, `-`, `_` and `.`"),
    N_("a name of lower-case letters, digits and `-`"),
    N_("a name of letters, digits, `_` and `-` that begins with a letter or `_`"),
    N_("a relative path without `..`"),
    N_("paths stay inside the step's working directory"),
    N_("a step and one of its outputs, written step.output"),
    N_("the name of an environment variable"),
    N_("the name of a container image, without spaces"),
    N_("a description"),
    N_("the pipeline"),
    N_("the list of parameters"),
    N_("a time such as 30s, 10m, 2h or 1d (a number alone is seconds)"),
)
_VALUE = re.compile(r"%\(([a-d])\)s")
_DEEPEST = 2
"""A sentence, its values, and what stands inside those."""


def translated(language: Language, text: str, *, depth: int = 0) -> str:
    """The sentence in the reader's language; one that is not known stays as it is."""
    found = _recognise(text) if depth <= _DEEPEST else None
    if found is None:
        return text
    sentence, values = found
    said = {name: translated(language, value, depth=depth + 1) for name, value in values}
    return language.gettext(sentence) % said if said else language.gettext(sentence)


@lru_cache(maxsize=4096)
def _recognise(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Which sentence it is, and the values in it."""
    for sentence, pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            return sentence, tuple(match.groupdict().items())
    return None


def _pattern(sentence: str) -> re.Pattern[str]:
    parts = _VALUE.split(sentence)
    fixed = [re.escape(part.replace("%%", "%")) for part in parts[::2]]
    named = [f"(?P<{name}>.+?)" for name in parts[1::2]]
    return re.compile("".join(a + b for a, b in zip(fixed, [*named, ""], strict=True)), re.DOTALL)


# The one with the most fixed words first: "write %(a)s" fits many.
_PATTERNS = [
    (sentence, _pattern(sentence))
    for sentence in sorted(_SENTENCES, key=lambda s: -len(_VALUE.sub("", s)))
]
