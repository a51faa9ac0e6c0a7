"""What the tests of exercises ask of a check."""


def wrong(check, answer, beginning):
    """The answer fails with the diagnosis that begins so."""
    verdict = check(answer)
    assert verdict.passed is False
    assert verdict.diagnosis.startswith(beginning), verdict.diagnosis


def not_attempted(check):
    """An answer that is still empty, or not there at all, is not a mistake."""

    def stub(*arguments): ...

    assert check(stub).passed is None
    assert check(None).passed is None
