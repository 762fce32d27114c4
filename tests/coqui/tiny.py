"""Coqui checkpoints small enough for a test: the package's own classes, configurations and file formats, with
random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from TTS.tts.configs.vits_config import VitsArgs, VitsConfig
from TTS.tts.configs.xtts_config import XttsArgs, XttsConfig
from TTS.tts.models.vits import Vits
from TTS.tts.models.xtts import Xtts

AUDIBLE = 8.0
"""What the decoders' last weights are multiplied by: random ones are too quiet to be heard."""
AUDIO_TOKENS, STOP = 64, 65


def vits(folder: Path, *, speakers: tuple[str, ...] = ()) -> Path:
    """A VITS model that reads letters, with speakers of these names or a single one."""
    folder.mkdir()
    args = VitsArgs(
        hidden_channels=16,
        hidden_channels_ffn_text_encoder=16,
        num_layers_text_encoder=1,
        num_layers_flow=2,
        num_layers_posterior_encoder=1,
        upsample_initial_channel_decoder=16,
        upsample_rates_decoder=[16, 16],
        upsample_kernel_sizes_decoder=[32, 32],
        resblock_kernel_sizes_decoder=[3],
        resblock_dilation_sizes_decoder=[[1, 3, 5]],
        init_discriminator=False,
    )
    config = VitsConfig(model_args=args, use_phonemes=False, text_cleaner="basic_cleaners")
    if speakers:
        torch.save({name: number for number, name in enumerate(speakers)}, folder / "speakers.pth")
        for part in (config, args):
            part.use_speaker_embedding = True
            part.num_speakers = len(speakers)
            part.speakers_file = str(folder / "speakers.pth")
    torch.manual_seed(1)
    model = Vits(config)
    model.waveform_decoder.conv_post.weight.data *= AUDIBLE
    torch.save({"model": model.state_dict()}, folder / "model.pth")
    config.save_json(str(folder / "config.json"))
    return folder


def xtts(folder: Path, *, speakers: tuple[str, ...] = ()) -> Path:
    """An XTTS model of two small layers that never thinks it has come to the end of a text."""
    folder.mkdir()
    texts = _vocabulary(folder / "vocab.json")
    config = XttsConfig(
        model_args=XttsArgs(
            tokenizer_file=str(folder / "vocab.json"),
            gpt_layers=2,
            gpt_n_model_channels=64,
            gpt_n_heads=2,
            gpt_max_audio_tokens=AUDIO_TOKENS,
            gpt_number_text_tokens=texts,
            gpt_start_text_token=1,
            gpt_stop_text_token=2,
            gpt_num_audio_tokens=66,
            gpt_start_audio_token=64,
            gpt_stop_audio_token=STOP,
            gpt_code_stride_len=256,
            gpt_use_perceiver_resampler=True,
            decoder_input_dim=64,
        )
    )
    torch.manual_seed(1)
    model = Xtts(config)
    model.gpt.mel_head.bias.data[STOP] = -100.0
    model.hifigan_decoder.waveform_decoder.conv_post.weight.data *= AUDIBLE
    torch.save({"model": model.state_dict()}, folder / "model.pth")
    if speakers:
        torch.save({name: _speaker() for name in speakers}, folder / "speakers_xtts.pth")
    config.save_json(str(folder / "config.json"))
    return folder


def _speaker() -> dict[str, torch.Tensor]:
    return {"gpt_cond_latent": torch.randn(1, 32, 64), "speaker_embedding": torch.randn(1, 512, 1)}


def _vocabulary(path: Path) -> int:
    marks = ["[UNK]", "[START]", "[STOP]", "[SPACE]", "[en]", "[es]"]
    letters = list("abcdefghijklmnopqrstuvwxyz'.,!?-áéíóúñ")
    vocabulary = {token: number for number, token in enumerate([*marks, *letters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="[UNK]"))
    tokenizer.add_special_tokens(marks)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(path))
    return len(vocabulary)
