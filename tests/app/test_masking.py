"""What is masked before it is recorded (SE-08)."""

from tests.pictures import part
from tests.sessions.events import said
from toolcell.app.masking import Masking
from toolcell.calls.redaction import Redactor


class Kept:
    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(event)


def test_images_keep_their_place_in_a_text_whose_secrets_are_masked():
    """SE-08: the masked text has another length."""
    kept = Kept()
    message = said("key S3CR3T-CANARY-0001: here, there", images=(part(1, at=23), part(2)))
    Masking(kept, Redactor(["S3CR3T-CANARY-0001"])).emit(message)
    (event,) = kept.events
    pieces = [each if isinstance(each, str) else "IMAGE" for each in event.message.parts()]
    assert pieces == ["key [redacted]:", "IMAGE", " here, there", "IMAGE"]
