from tests.rules.parity.calibration.committed import commit


def prepare(project):
    """The project was calibrated with what is installed."""
    commit(project)
