from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.model.resources import (
    MAX_AMOUNT,
    NOTHING,
    Resources,
    format_quantity,
    parse_quantity,
)

GPU = "nvidia.com/gpu"
NAMES = st.sampled_from(["cpu", "memory", GPU, "ephemeral-storage", "hugepages-2Mi"])
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 10**15)).map(Resources.of)


@pytest.mark.parametrize(
    ("text", "resource", "expected"),
    [
        pytest.param("2", "cpu", 2000, id="whole cores"),
        pytest.param("500m", "cpu", 500, id="thousandths of a core"),
        pytest.param("0.5", "cpu", 500, id="part of a core"),
        pytest.param(".5", "cpu", 500, id="nothing before the point"),
        pytest.param("2.", "cpu", 2000, id="nothing after the point"),
        pytest.param("+2", "cpu", 2000, id="a plus sign"),
        pytest.param("1e3", "cpu", 1_000_000, id="an exponent"),
        pytest.param("1E-3", "cpu", 1, id="a negative exponent"),
        pytest.param("5e5u", "cpu", None, id="an exponent and a suffix are not combined"),
        pytest.param("500000u", "cpu", 500, id="millionths"),
        pytest.param("1000000n", "cpu", 1, id="billionths"),
        pytest.param("1k", "cpu", 1_000_000, id="thousands"),
        pytest.param("512Mi", "memory", 512 * 2**20, id="binary megabytes"),
        pytest.param("1Ki", "memory", 1024, id="binary kilobytes"),
        pytest.param("1.5Gi", "memory", 3 * 2**29, id="a part of a binary gigabyte"),
        pytest.param("128974848000m", "memory", 128974848, id="thousandths that are whole bytes"),
        pytest.param("129e6", "memory", 129_000_000, id="bytes with an exponent"),
        pytest.param("1E", "memory", None, id="an exabyte is too much"),
        pytest.param("1P", "memory", 10**15, id="a petabyte"),
        pytest.param("1T", "ephemeral-storage", 10**12, id="storage counts bytes"),
        pytest.param("2Mi", "hugepages-2Mi", 2**21, id="huge pages count bytes"),
        pytest.param("1", GPU, 1000, id="a device"),
        pytest.param("8.0", GPU, 8000, id="whole devices with a point"),
        pytest.param("1000m", GPU, 1000, id="a device in thousandths"),
        pytest.param("0", GPU, 0, id="zero is for the caller to judge"),
        pytest.param("-0", "cpu", 0, id="minus zero is zero"),
        pytest.param("9007199254740992", "memory", MAX_AMOUNT, id="the largest amount"),
        pytest.param("0e999", "cpu", 0, id="zero with any exponent"),
    ],
)
def test_quantities(text: str, resource: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match=r".+"):
            parse_quantity(text, resource=resource)
    else:
        assert parse_quantity(text, resource=resource) == expected


@pytest.mark.parametrize(
    ("text", "resource", "words"),
    [
        pytest.param("", "cpu", "is not a quantity", id="empty"),
        pytest.param("lots", "cpu", "such as 500m or 2", id="a word"),
        pytest.param("1 Gi", "memory", "such as 512Mi", id="a space"),
        pytest.param("1GB", "memory", "is not a quantity", id="a unit of everyday life"),
        pytest.param("nan", "cpu", "is not a quantity", id="not a number"),
        pytest.param("inf", "cpu", "is not a quantity", id="infinity"),
        pytest.param("٣", "cpu", "is not a quantity", id="digits of other scripts"),
        pytest.param("1\n", "cpu", "is not a quantity", id="a line break"),
        pytest.param("9" * 41, "cpu", "is not a quantity", id="absurdly long"),
        pytest.param("1e999", "memory", "more than can be counted", id="absurdly large"),
        pytest.param("9007199254740993", "memory", "more than can", id="one byte too many"),
        pytest.param("-1", "cpu", "cannot be negative", id="negative"),
        pytest.param("-1Ki", "memory", "cannot be negative", id="negative with a suffix"),
        pytest.param("0.5", GPU, "handed out whole", id="half a device"),
        pytest.param("500m", GPU, "handed out whole", id="half a device in thousandths"),
        pytest.param("0.1m", "cpu", "finer than 1m", id="less than a thousandth of a core"),
        pytest.param("400m", "memory", "whole number of bytes", id="part of a byte"),
        pytest.param("1e-999", "cpu", "finer than 1m", id="absurdly small"),
    ],
)
def test_refused_quantities(text: str, resource: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_quantity(text, resource=resource)


@pytest.mark.parametrize(
    ("value", "resource", "expected"),
    [
        pytest.param(2**29, "memory", "512Mi", id="the largest binary unit that divides"),
        pytest.param(3 * 2**29, "memory", "1536Mi", id="never a fraction"),
        pytest.param(10**9, "memory", "1G", id="a decimal unit where no binary one divides"),
        pytest.param(1234567, "memory", "1234567", id="plain bytes"),
        pytest.param(0, "memory", "0", id="no bytes"),
        pytest.param(2000, "cpu", "2", id="whole cores"),
        pytest.param(1500, "cpu", "1500m", id="parts of cores"),
        pytest.param(8000, GPU, "8", id="devices"),
    ],
)
def test_format(value: int, resource: str, expected: str) -> None:
    assert format_quantity(value, resource=resource) == expected


@given(value=st.integers(0, MAX_AMOUNT), resource=st.sampled_from(["cpu", "memory", "storage"]))
def test_what_is_written_reads_back(value: int, resource: str) -> None:
    assert parse_quantity(format_quantity(value, resource=resource), resource=resource) == value


@given(devices=st.integers(0, MAX_AMOUNT // 1000))
def test_whole_devices_read_back(devices: int) -> None:
    text = format_quantity(devices * 1000, resource=GPU)
    assert parse_quantity(text, resource=GPU) == devices * 1000


@given(st.text(max_size=60) | st.from_regex(r"[-+]?[0-9.]{0,30}[a-zA-Z0-9+-]{0,8}"), NAMES)
def test_any_text_gives_an_amount_or_a_sentence(text: str, resource: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= parse_quantity(text, resource=resource) <= MAX_AMOUNT


def test_resources_drop_zeros_and_sort() -> None:
    made = Resources.of({"memory": 5, GPU: 0, "cpu": 1})
    assert made.items() == (("cpu", 1), ("memory", 5))
    assert made == Resources.of({"cpu": 1, "memory": 5})
    assert hash(made) == hash(Resources.of({"cpu": 1, "memory": 5}))
    assert made.get(GPU) == 0
    assert not NOTHING
    assert str(made) == "cpu 1m, memory 5"
    assert list(made) == ["cpu", "memory"]


def test_negative_amounts_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Resources.of({"cpu": -1})
    with pytest.raises(ValueError, match="cannot be negative"):
        Resources.of({"cpu": 1}) - Resources.of({"cpu": 2})
    with pytest.raises(ValueError, match="cannot be negative"):
        Resources.of({"cpu": 1}).scaled(-1)


@given(a=AMOUNTS, b=AMOUNTS, c=AMOUNTS)
def test_sums_form_a_commutative_group_above_zero(a: Resources, b: Resources, c: Resources) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a + NOTHING == a
    assert Resources.of(a.as_dict()) == a


@given(a=AMOUNTS, times=st.integers(0, 9))
def test_scaling_is_repeated_adding(a: Resources, times: int) -> None:
    total = NOTHING
    for _ in range(times):
        total = total + a
    assert a.scaled(times) == total


@given(need=AMOUNTS, room=AMOUNTS)
def test_a_shortfall_is_exactly_what_is_missing(need: Resources, room: Resources) -> None:
    lack = need.shortfall(room)
    assert need.fits_in(room) == (lack == NOTHING)
    assert need.fits_in(room + lack)
    if lack:
        name, amount = lack.items()[0]
        almost = Resources.of({**lack.as_dict(), name: amount - 1})
        assert not need.fits_in(room + almost)
