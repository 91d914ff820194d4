"""Findings as SARIF 2.1.0, for whatever shows the findings of other checkers.

A transcript has no lines, so that a finding stands at a logical location: its session, turn and the
versions of its records. Where an import says in which place of its source a record stood, that is an
artifact's location, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, TextIO
from urllib.parse import quote

import msgspec

from onrecord import __version__
from onrecord.projections.codes import MEANINGS, UNKNOWN
from onrecord.projections.findings import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LINE = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]{0,8})")


def write_sarif(found: Iterable[tuple[Finding, Mapping[int, str]]], out: TextIO) -> None:
    """Write findings as one run, one by one; each with the places in a source, by version."""
    out.write(
        f'{{"version":"2.1.0","$schema":"{SCHEMA}","runs":[{{"columnKind":"unicodeCodePoints"'
    )
    out.write(',"results":[')
    codes = list(MEANINGS)
    between = ""
    for finding, sources in found:
        if finding.code not in codes:
            codes.append(finding.code)
        out.write(between + msgspec.json.encode(_result(finding, sources)).decode())
        between = ",\n"
    driver = {
        "name": "onrecord",
        "semanticVersion": __version__,
        "shortDescription": {"text": "Holds what was delivered against the transcript."},
        "rules": [_rule(code) for code in codes],
    }
    out.write(f'],"tool":{{"driver":{msgspec.json.encode(driver).decode()}}}}}]}}\n')


def _rule(code: str) -> dict[str, Any]:
    level, short, advice = MEANINGS.get(code, UNKNOWN)
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in code.split("-")),
        "shortDescription": {"text": short},
        "fullDescription": {"text": f"{short} {advice}"},
        "help": {"text": advice},
        "defaultConfiguration": {"level": level},
    }


def _result(finding: Finding, sources: Mapping[int, str]) -> dict[str, Any]:
    versions = ",".join(map(str, finding.versions))
    where = f"session {finding.session}" + (f", turn {finding.turn}" if finding.turn else "")
    logical = {
        "name": finding.turn or finding.session,
        "fullyQualifiedName": "/".join(
            quote(part, safe=",") for part in (finding.session, finding.turn, versions) if part
        ),
        "kind": "member",
    }
    physical = [
        {"physicalLocation": place}
        for place in _distinct(
            _physical(sources[version]) for version in finding.versions if version in sources
        )
    ]
    first, *related = physical or [{}]
    return {
        "ruleId": finding.code,
        "level": MEANINGS.get(finding.code, UNKNOWN).level,
        "message": {"text": f"{finding.detail} ({where}, records {versions})"},
        "locations": [{**first, "logicalLocations": [logical]}],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"onrecord/v1": _fingerprint(finding)},
        "properties": {
            "session": finding.session,
            "turn": finding.turn,
            "versions": list(finding.versions),
        },
    }


def _physical(place: str) -> dict[str, Any]:
    """Return a place in a source: a file and its line, else what it is called there."""
    line = _LINE.fullmatch(place)
    if line is None:
        return {"artifactLocation": {"uri": quote(place)}}
    return {
        "artifactLocation": {"uri": quote(line["file"])},
        "region": {"startLine": int(line["line"])},
    }


def _distinct(places: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for place in places:
        if place not in seen:
            seen.append(place)
            yield place


def _fingerprint(finding: Finding) -> str:
    """Return what a finding is known by in the next audit: its code and where it begins."""
    words = (finding.code, finding.session, finding.turn, finding.versions[:1])
    return sha256(msgspec.json.encode(words)).hexdigest()
