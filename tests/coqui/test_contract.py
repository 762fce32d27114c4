"""Coqui voices keep to what every voice keeps to."""

from tests.tts.test_voice_contract import (
    test_a_written_word_in_another_script_is_never_said,
    test_audio_is_mono_float32_within_range,
    test_cancelled_before_it_began_says_nothing,
    test_cancelling_between_chunks_stops_without_another,
    test_every_written_word_is_timed_in_order_inside_the_audio,
    test_nothing_sayable_gives_no_audio,
    test_odd_text_is_said_without_babble,
    test_ten_thousand_characters_start_at_once_and_stop_when_told,
    test_the_first_sound_comes_at_once_and_the_end_is_a_short_gap,
    test_two_threads_give_the_audio_that_each_gives_alone,
    test_words_come_with_the_chunk_in_which_they_begin_or_later,
)

__all__ = [
    "test_a_written_word_in_another_script_is_never_said",
    "test_audio_is_mono_float32_within_range",
    "test_cancelled_before_it_began_says_nothing",
    "test_cancelling_between_chunks_stops_without_another",
    "test_every_written_word_is_timed_in_order_inside_the_audio",
    "test_nothing_sayable_gives_no_audio",
    "test_odd_text_is_said_without_babble",
    "test_ten_thousand_characters_start_at_once_and_stop_when_told",
    "test_the_first_sound_comes_at_once_and_the_end_is_a_short_gap",
    "test_two_threads_give_the_audio_that_each_gives_alone",
    "test_words_come_with_the_chunk_in_which_they_begin_or_later",
]
