"""The parts of :mod:`tts.speakable`: one file per kind of writing that is not said as it is spelled.

The normaliser is our own because heard text needs its alignment: when a caller interrupts, the words that
were said are led back to the characters that the model wrote (:mod:`tts.text.tracked`), and only those stay
in the conversation. A normaliser that returns a string alone cannot tell. Numbers in words are num2words'.
"""
