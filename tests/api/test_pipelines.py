"""Checking a pipeline without running it."""

from __future__ import annotations

import jsonschema
import pytest

from tests.api.platform import CHAIN, Platform


async def test_a_good_pipeline_is_described(platform: Platform) -> None:
    text = (
        CHAIN + "  - name: many\n    needs: [second]\n    command: [x]\n    matrix: {n: [1, 2]}\n"
    )
    answer = await platform.ask(
        platform.cast.reader, "POST", "/pipelines/validate", {"pipeline": text}
    )
    found = answer.json()
    assert (found["valid"], found["name"], found["problems"]) == (True, "chain", [])
    assert (found["instances"], found["edges"]) == (4, 3)
    assert [(s["name"], s["instances"], s["needs"]) for s in found["steps"]] == [
        ("first", 1, []),
        ("second", 1, ["first"]),
        ("many", 2, ["second"]),
    ]
    assert found["parameters"][0]["default"] == "3"


async def test_every_problem_is_reported_with_its_place(platform: Platform) -> None:
    text = "metadata: {name: x}\nsteps:\n  - name: a\n    comand: [x]\n    needs: [b]\n"
    answer = await platform.ask(
        platform.cast.member, "POST", "/pipelines/validate", {"pipeline": text}
    )
    found = answer.json()
    assert (answer.status_code, found["valid"]) == (200, False)
    assert len(found["problems"]) >= 2
    assert all(p["line"] and p["column"] for p in found["problems"])


@pytest.mark.parametrize("text", ["", "a: &a [*a]", "\x00", "[" * 5000, "x" * 2_000_000])
async def test_any_text_is_answered(platform: Platform, text: str) -> None:
    answer = await platform.ask(
        platform.cast.member, "POST", "/pipelines/validate", {"pipeline": text}
    )
    assert answer.status_code == 200
    assert answer.json()["problems"]


async def test_given_parameters_are_checked(platform: Platform) -> None:
    async def problems(parameters: object) -> list[str]:
        body = {"pipeline": CHAIN, "parameters": parameters}
        answer = await platform.ask(platform.cast.member, "POST", "/pipelines/validate", body)
        return [p["field"] for p in answer.json()["problems"]]

    assert await problems({"epochs": 5}) == []
    assert await problems({"epochs": "five"}) == ["parameters.epochs"]
    assert await problems({"epoch": 5}) == ["parameters.epoch"]


async def test_the_schema_is_a_schema_and_needs_no_credential(platform: Platform) -> None:
    answer = await platform.client.get("/api/v1/pipelines/schema")
    jsonschema.Draft202012Validator.check_schema(answer.json())
