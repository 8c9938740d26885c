"""What the tests under act share: the exported action, one environment of the tool, and the consumer's repository."""

import sys

import pytest

from tests.action.harness import CONSUMER, PULL_REQUEST, export_action, make_repository, run_act


@pytest.fixture(scope="session")
def act(tmp_path_factory):
    """Runs a workflow on a consumer's repository; the tool's environment is made once."""
    action = export_action(tmp_path_factory.mktemp("action"))
    tools = tmp_path_factory.mktemp("tools")

    def run(workflow, fake, *, event=PULL_REQUEST, event_name="pull_request", files=(), store=None, **environ):
        scratch = tmp_path_factory.mktemp("run")
        tree = {path.name: path.read_text() for path in CONSUMER.iterdir() if path.is_file()}
        tree |= {".github/workflows/onnx.yml": workflow, **dict(files)}
        repository = make_repository(scratch / "tree", tree)
        return run_act(
            event_name,
            tree=repository,
            action=action,
            scratch=scratch,
            tools=tools,
            event=event(repository) if callable(event) else event,
            api=fake.url,
            store=store,
            environ={"VIRTUAL_ENV": sys.prefix, "TEST_TREE": str(repository), **environ},
        )

    return run
