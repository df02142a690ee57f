"""All hostile cases, in groups."""

from hostile_case import Case
from hostile_frames import CASES as FRAMES
from hostile_load import CASES as LOAD
from hostile_messages import CASES as MESSAGES
from hostile_qpack import CASES as QPACK

CASES: tuple[Case, ...] = (*FRAMES, *MESSAGES, *QPACK, *LOAD)
