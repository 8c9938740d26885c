"""The sizes of a second example: other ones, in the range, and such that what was baked shows."""

from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.export.another import Room, choose, fits, rooms, variations
from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment


def contract(shape: list[int | str], **dims: DimContract) -> Contract:
    return Contract(
        schema_version=1,
        model="m",
        variant=None,
        contract_version=1,
        inputs=[TensorContract(name="x", dtype="float32", shape=shape)],
        outputs=[],
        dims=dims,
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=20,
        ir_version=10,
        domains={},
        environment=Environment(onnx_ci="", python="", platform="", cpu="", cores=1),
    )


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.tuples(st.integers(2, 40), st.integers(0, 60), st.sampled_from([1, 2, 4]))
    ),
    st.sets(st.integers(0, 20), max_size=3),
)
def test_sizes_are_other_distinct_and_in_the_range_or_the_example_stays(given_rooms, taken):
    known = {name: Room(low, low + more, step) for name, (low, more, step) in given_rooms.items()}
    example = {name: -(-room.least // room.step) * room.step for name, room in known.items()}
    chosen = choose(known, example, taken, [])
    moved = {name: size for name, size in chosen.items() if size != example[name]}
    assert len(set(moved.values())) == len(moved)
    for name, size in moved.items():
        room = known[name]
        assert room.least <= size <= room.most
        assert size % room.step == 0
        assert size not in {0, 1, *taken}


def test_the_order_of_two_like_dims_is_turned_over():
    known = {"height": Room(2, 512, 1), "width": Room(2, 512, 1), "batch": Room(2, 32, 1)}
    chosen = choose(known, {"height": 48, "width": 64, "batch": 2}, {3}, [])
    assert chosen["height"] > chosen["width"]
    assert chosen["batch"] == 4  # 3 is a static size


def test_a_square_example_is_followed_by_a_rectangle():
    known = {"height": Room(2, None, 1), "width": Room(2, None, 1)}
    chosen = choose(known, {"height": 16, "width": 16}, set(), [])
    assert chosen["height"] != chosen["width"]


def test_a_third_example_is_another_again():
    known = {"length": Room(2, 64, 1)}
    first = choose(known, {"length": 8}, set(), [])
    assert choose(known, {"length": 8}, set(), [first])["length"] not in (8, first["length"])


def test_a_declared_range_that_was_narrowed_is_left_on_either_side():
    above = rooms(
        contract(["n"], n=DimContract(min=1, max=32, declared=True, captured_min=2, captured_max=8)), {"n": 4}, []
    )
    below = rooms(
        contract(["n"], n=DimContract(min=1, max=32, declared=True, captured_min=9, captured_max=32)), {"n": 12}, []
    )
    assert choose(above, {"n": 4}, set(), [])["n"] == 9
    assert choose(below, {"n": 12}, set(), [])["n"] == 8


def test_a_captured_range_without_a_declared_one_is_kept():
    known = rooms(contract(["n"], n=DimContract(min=2, max=8, captured_min=2, captured_max=8)), {"n": 6}, [])
    assert choose(known, {"n": 6}, set(), [])["n"] <= 8


def test_a_case_of_the_users_outside_the_captured_range_is_looked_at():
    promised = contract(["n"], n=DimContract(min=2, max=8, captured_min=2, captured_max=8))
    known = rooms(promised, {"n": 6}, [{"n": 6}, {"n": 12}])
    assert fits({"n": 12}, known, {"n": 6}, set())
    assert choose(known, {"n": 6}, set(), [])["n"] == 12


def test_a_frozen_dim_that_was_left_to_the_exporter_moves_only_if_a_case_does():
    promised = contract([7], n=DimContract(min=7, max=7, captured_min=7, captured_max=7))
    assert rooms(promised, {"n": 7}, [{"n": 7}]) == {}
    assert rooms(promised, {"n": 7}, [{"n": 7}, {"n": 12}]).keys() == {"n"}


def test_a_frozen_dim_that_was_declared_dynamic_moves():
    promised = contract(["n"], n=DimContract(min=7, max=7, captured_min=7, captured_max=7))
    assert choose(rooms(promised, {"n": 7}, []), {"n": 7}, set(), []) == {"n": 10}


def test_a_dim_with_one_size_gives_no_variation():
    assert list(variations({"n": Room(4, 4, 1)}, {"n": 4}, set(), [])) == []


def test_fewer_dims_are_tried_after_all_of_them():
    known = {"a": Room(2, 9, 1, (9,)), "b": Room(2, 64, 1)}
    tried = list(variations(known, {"a": 4, "b": 20}, set(), []))
    assert tried[0]["a"] == 9
    assert tried[0]["b"] != 20
    assert {"a": 4, "b": 30} in tried
    assert {"a": 9, "b": 20} in tried


def test_a_size_that_is_static_elsewhere_or_the_examples_is_no_good_example():
    known = {"a": Room(2, 64, 1), "b": Room(2, 64, 1)}
    example = {"a": 4, "b": 20}
    assert fits({"a": 5, "b": 21}, known, example, {3})
    for bad in ({"a": 4, "b": 21}, {"a": 3, "b": 21}, {"a": 21, "b": 21}, {"a": 1, "b": 21}, {"a": 5, "b": 65}):
        assert not fits(bad, known, example, {3})
