"""The simulated carriers by name."""

from __future__ import annotations

from web.phone.simulator.asterisk import AsteriskShape
from web.phone.simulator.plivo import PlivoShape
from web.phone.simulator.shape import Shape
from web.phone.simulator.telnyx import TelnyxShape
from web.phone.simulator.twilio import TwilioShape
from web.phone.simulator.vonage import VonageShape

SHAPES: dict[str, type[Shape]] = {
    "twilio": TwilioShape,
    "telnyx": TelnyxShape,
    "plivo": PlivoShape,
    "vonage": VonageShape,
    "asterisk": AsteriskShape,
}
