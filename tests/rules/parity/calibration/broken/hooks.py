from tests.rules.parity.calibration.committed import commit


def prepare(project):
    """The project was calibrated with an older runtime."""
    commit(project, onnxruntime="1.0.0")
