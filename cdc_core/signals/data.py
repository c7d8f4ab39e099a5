"""What do the data of all signals share?"""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_core.model.signals import SIGNAL_ID_MAX
from cdc_core.state.texts import storable


class SignalData(BaseModel):
    """Frozen, no unknown keys; fields have Debezium's names as aliases."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def said(error: ValidationError) -> str:
    """What is wrong and where, without the values."""
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'data'}: {detail['msg']}"
        for detail in error.errors(include_input=False, include_context=False, include_url=False)
    )


def refusal_of_id(signal_id: str) -> str | None:
    """Why a signal cannot have this id; None if it can."""
    if len(signal_id) > SIGNAL_ID_MAX:
        return f"its id has more than {SIGNAL_ID_MAX} characters"
    if storable(signal_id) != signal_id:
        return "its id has characters that the metadata store cannot hold"
    return None


def shortened_id(signal_id: str, content: str) -> str:
    """A stand-in for an id that cannot be recorded: its beginning, and a digest of ``content`` that
    tells it from others with that beginning."""
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{storable(signal_id)[: SIGNAL_ID_MAX - 20]}… {digest}"
