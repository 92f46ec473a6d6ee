"""Reads and amends the lifecycle document of an S3 bucket, leaving other people's rules alone."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from verderer.core.errors import Fault

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_TMP_RULE = "verderer-expire-tmp"
_UPLOADS_RULE = "verderer-abort-uploads"


def expires(document: str, prefix: str, days: int) -> bool:
    """Whether an enabled rule removes everything under `prefix` after at most `days` days."""
    return any(_covers(rule, prefix, days) for rule in _rules(_parsed(document)))


def with_rules(document: str, *, root: str, tmp: str, days: int) -> bytes:
    """The document with our two rules in it, replacing older ones of ours.

    `root` and `tmp` are key prefixes in the bucket. One rule removes what is under `tmp`, the
    other gives up unfinished multipart uploads under `root`; both after `days` days. `document`
    is empty when the bucket has none.
    """
    tree = _parsed(document) if document else Xml.Element(f"{{{NAMESPACE}}}LifecycleConfiguration")
    for rule in _rules(tree):
        if _text(rule, "ID") in (_TMP_RULE, _UPLOADS_RULE):
            tree.remove(rule)
    # Rules must be in the namespace of the document that they are added to.
    space = tree.tag.partition("}")[0] + "}" if "}" in tree.tag else ""
    expiry = _rule(tree, space, _TMP_RULE, tmp)
    _add(_add(expiry, space, "Expiration"), space, "Days", str(days))
    uploads = _rule(tree, space, _UPLOADS_RULE, root)
    abort = _add(uploads, space, "AbortIncompleteMultipartUpload")
    _add(abort, space, "DaysAfterInitiation", str(days))
    Xml.register_namespace("", NAMESPACE)
    return bytes(Xml.tostring(tree, encoding="utf-8"))


def _rule(tree: Xml.Element, space: str, name: str, prefix: str) -> Xml.Element:
    rule = _add(tree, space, "Rule")
    _add(rule, space, "ID", name)
    _add(_add(rule, space, "Filter"), space, "Prefix", prefix)
    _add(rule, space, "Status", "Enabled")
    return rule


def _add(parent: Xml.Element, space: str, name: str, text: str | None = None) -> Xml.Element:
    child = Xml.SubElement(parent, space + name)
    child.text = text
    return child


def _parsed(document: str) -> Xml.Element:
    try:
        return Xml.fromstring(document)  # noqa: S314 - from the operator's own S3 server, bounded
    except Xml.ParseError as error:
        raise Fault(
            "the bucket's lifecycle document cannot be read",
            hint="look at the bucket's lifecycle rules with the S3 server's own tool",
            retry_after_s=60.0,
        ) from error


def _rules(tree: Xml.Element) -> list[Xml.Element]:
    return [child for child in tree if child.tag.rpartition("}")[2] == "Rule"]


def _covers(rule: Xml.Element, prefix: str, days: int) -> bool:
    limit = _text(rule, "Expiration", "Days")
    covered = _text(rule, "Filter", "Prefix") or _text(rule, "Prefix")
    # A filter of several conditions may let objects through: not ours, not counted.
    narrowed = (
        _child(rule, "Filter", "And") is not None or _child(rule, "Filter", "Tag") is not None
    )
    return (
        _text(rule, "Status") == "Enabled"
        and limit.isdecimal()
        and int(limit) <= days
        and prefix.startswith(covered)
        and not narrowed
    )


def _child(element: Xml.Element, *path: str) -> Xml.Element | None:
    found: Xml.Element | None = element
    for name in path:
        if found is None:
            return None
        found = next((one for one in found if one.tag.rpartition("}")[2] == name), None)
    return found


def _text(element: Xml.Element, *path: str) -> str:
    found = _child(element, *path)
    return (found.text or "").strip() if found is not None else ""
