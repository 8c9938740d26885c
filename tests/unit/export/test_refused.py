"""One finding a dim for the sizes that the module refuses."""

from __future__ import annotations

from onnx_ci.export.refused import RULE, merged
from onnx_ci.records.result import finding


def refused(subject, said, dims=None, **more):
    return finding(RULE, "fail", subject, said, data={"dims": dims} if dims else {"condition": "c"}, **more)


def test_sizes_of_one_dim_become_one_finding_that_names_them_and_keeps_the_line():
    other = finding("contract.range", "fail", "n", "narrowed")
    drawn = finding(RULE, "warn", "n", "values that were drawn", data={"dims": {"n": 3}})
    found = merged(
        [
            refused("n", "refuses n = 9", {"b": 2, "n": 9}),
            other,
            refused("n", "assumes n % 2 == 0", file="model.py", line=3),
            refused("n", "refuses n = 7", {"b": 2, "n": 7}),
            refused("n", "refuses n = 9", {"b": 4, "n": 9}),
            drawn,
        ]
    )
    assert [one.rule for one in found] == ["contract.range", RULE, RULE]
    assert found[1].message == "assumes n % 2 == 0; so it does at n = 7; n = 9"
    assert (found[1].line, found[1].data["also"]) == (3, [{"n": 9}, {"n": 7}])
    assert (found[0], found[2]) == (other, drawn)


def test_other_dims_and_cases_of_the_users_stay_apart():
    found = [refused("h", "h", {"h": 1}), refused("h, w", "both", {"h": 1, "w": 2}), refused("day", "fixed", {"h": 4})]
    assert merged(found) == found


def test_many_sizes_are_counted():
    (one,) = merged([refused("n", f"at {size}", {"n": size}) for size in range(20)])
    assert one.message.startswith("at 0; so it does at n = 1; n = 2")
    assert one.message.endswith("and at 11 more sizes")
