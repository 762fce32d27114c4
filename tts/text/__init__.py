"""The parts of :mod:`tts.speakable`: one file per kind of writing that is not said as it is spelled."""
