"""The client's audio on its way in: base64 of a byte stream in, 16 kHz audio at the pace of speech out."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.audio import CALLER_RATE, Audio, StreamResampler
from web.paced_audio import Command, PacedAudio
from web.phone.encodings import Encoding, StreamDecoder
from web.realtime.client_events import AudioAppend, BadEvent, ClientEvent, decode_audio


class InputBuffer:
    """One connection's input audio buffer, and the commands that were sent behind audio."""

    def __init__(self, hear: Callable[[Audio], None], encoding: Encoding) -> None:
        """`hear` takes float32 mono at 16 kHz."""
        self._paced = PacedAudio(hear)
        self._begin(encoding)

    async def run(self) -> None:
        """Beside the socket's reader, until cancelled: carry out what waits when its time has come."""
        await self._paced.run()

    def append(self, event: AudioAppend) -> None:
        """Take a message's audio, all of it or nothing. Raises BadEvent."""
        payload = decode_audio(event)
        seconds = len(payload) / self._encoding.sample_bytes / self._encoding.rate
        if not self._paced.has_room(seconds):
            raise BadEvent(
                "input_audio_buffer_full",
                f"this message's {seconds:.1f} s of audio are lost: {self._paced.seconds:.0f} s wait already "
                f"to be heard at the pace of speech, and no more than {self._paced.most_seconds:.0f} s may",
                param="audio",
                event_id=event.event_id,
            )
        self._paced.put(self._resampler.push(self._decoder.push(payload)))

    async def behind(self, event: ClientEvent, command: Command) -> None:
        """Carry out a command behind the audio that was sent before it. Raises BadEvent."""
        if not self._paced.takes_commands:
            raise BadEvent(
                "too_many_events_waiting",
                f"{self._paced.most_commands} events wait for audio that was sent before them",
                event_id=event.event_id,
            )
        await self._paced.behind(command)

    def flush(self) -> None:
        """The last milliseconds, which the resampler holds back, belong before what is asked for now."""
        self._paced.put(self._resampler.flush())

    def end_stream(self) -> None:
        """What comes next is another recording: half a sample at the end of this one stays out of it."""
        self.flush()
        self._decoder = StreamDecoder(self._encoding)

    def clear(self) -> None:
        """Forget what has not been heard, but for what was committed."""
        self._paced.clear()
        self._begin(self._encoding)

    def change_format(self, encoding: Encoding) -> None:
        """Of what is appended from now on; what waits stays as it is."""
        if encoding != self._encoding:
            self.flush()
            self._begin(encoding)

    def _begin(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._decoder = StreamDecoder(encoding)
        self._resampler = StreamResampler(encoding.rate, CALLER_RATE)
