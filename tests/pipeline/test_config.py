"""Settings: which source wins, what a wrong one says, what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import ConfigError, Settings, describe, load


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str) -> Path:
    path = Path("rejoinder.toml")
    path.write_text(text)
    return path


def test_flags_win_over_environment_over_file_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    write("port = 1\nmax_calls = 2\nllm_threads = 3\n")
    monkeypatch.setenv("REJOINDER_MAX_CALLS", "20")
    monkeypatch.setenv("REJOINDER_LLM_THREADS", "30")
    settings = load({"llm_threads": 200, "port": None})
    assert (settings.port, settings.max_calls, settings.llm_threads, settings.asr_threads) == (1, 20, 200, 1)
    assert settings.origin("port") == "rejoinder.toml"
    assert settings.origin("max_calls") == "REJOINDER_MAX_CALLS"
    assert settings.origin("llm_threads") == "flag"
    assert settings.origin("asr_threads") == "default"


def test_built_directly_settings_know_neither_environment_nor_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write("port = 1\n")
    monkeypatch.setenv("REJOINDER_MAX_CALLS", "20")
    assert (Settings().port, Settings().max_calls) == (8765, 4)


def test_the_file_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text("port = 7\n")
    assert load(file=elsewhere).port == 7
    monkeypatch.setenv("REJOINDER_CONFIG", str(elsewhere))
    assert load().port == 7
    monkeypatch.setenv("REJOINDER_CONFIG", str(tmp_path / "nowhere.toml"))
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.toml: No such file"):
        load()
    monkeypatch.setenv("REJOINDER_CONFIG", "")
    assert load().port == 8765


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("small", "qwen2.5-coder-0.5b"),
        ("smallest", "smollm2-135m"),
        ("https://example.com/v1", "https://example.com/v1"),
        (".", "."),
    ],
)
def test_language_models_by_name_address_or_path(given: str, expected: str) -> None:
    assert load({"llm": given}).llm == expected


def test_lists_may_be_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_ALLOWED_ORIGINS", "https://a.example, https://b.example")
    assert load().allowed_origins == ("https://a.example", "https://b.example")
    monkeypatch.delenv("REJOINDER_ALLOWED_ORIGINS")
    write('allowed_origins = ["https://c.example"]')
    assert load().allowed_origins == ("https://c.example",)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": 99999}, r"port = 99999 \(from flag\): .*65535.* Accepted: TCP port, 0 to 65535"),
        ({"llm": "smal"}, r"llm = 'smal' \(from flag\): .*did you mean 'small'.* Accepted: .*smallest"),
        ({"asr_model": "nowhere"}, r"asr_model = 'nowhere' .*neither a known model nor an existing path"),
        ({"llm": "a\0b"}, "it holds a NUL character"),
        ({"latency_log": "/tmp/a\0.db"}, r"latency_log = .* \(from flag\): it holds a NUL character"),
        ({"agent": "a\0.toml"}, "agent = .*it holds a NUL character"),
        ({"host": "[::1"}, r"host = '\[::1' \(from flag\): neither a host's name nor an address"),
        ({"host": "http://127.0.0.1"}, "neither a host's name nor an address; the port is a setting"),
        ({"host": "localhost:8765"}, "neither a host's name nor an address; the port is a setting"),
        ({"llm": "http://[::1"}, r"llm = 'http://\[::1' \(from flag\): Invalid IPv6 URL"),
        ({"llm": "http://"}, "llm = .*not the address of a server"),
        ({"voice": "https:///v1"}, "voice = .*not the address of a server"),
        ({"voice": "http://localhost:99999"}, "voice = .*Port out of range"),
        ({"draft_model": "http://localhost:8000"}, "draft_model = .*neither a known model nor an existing"),
        ({"speculate": "perhaps"}, r"speculate = 'perhaps' .*Accepted: true or false"),
        ({"max_callz": 3}, r"no setting 'max_callz'; did you mean 'max_calls'"),
    ],
)
def test_a_wrong_flag_says_what_is_accepted(flags: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(flags)


def test_origins_are_kept_as_browsers_write_them() -> None:
    given = "https://A.example/, http://b.example:80, https://c.example:8443, chrome-extension://abc, *, null"
    kept = ("https://a.example", "http://b.example", "https://c.example:8443", "chrome-extension://abc", "*")
    assert load({"allowed_origins": given}).allowed_origins == (*kept, "null")
    for wrong in ("a.example", "https://a.example/page", "https://"):
        with pytest.raises(ConfigError, match="is no origin"):
            load({"allowed_origins": wrong})


@pytest.mark.parametrize("url", ["voice.example.com", "https://", "wss://voice.example.com", "https://[a"])
def test_a_public_address_has_a_scheme_and_a_host(url: str) -> None:
    with pytest.raises(ConfigError, match=r"public_url.* as https://HOST/PATH"):
        load({"public_url": url})
    assert load({"public_url": "https://voice.example.com/agents"}).public_url.endswith("/agents")


def test_every_wrong_setting_is_named_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    write("max_calls = 0\n")
    monkeypatch.setenv("REJOINDER_PORT", "many")
    with pytest.raises(ConfigError) as failure:
        load()
    lines = str(failure.value).splitlines()
    assert len(lines) == 2
    assert any(line.startswith("port = 'many' (from REJOINDER_PORT)") for line in lines)
    assert any(line.startswith("max_calls = 0 (from rejoinder.toml)") for line in lines)


def test_unknown_keys_of_the_file_get_the_nearest_setting() -> None:
    write("prot = 1\nxyzzy = 2\n")
    with pytest.raises(ConfigError) as failure:
        load()
    assert "rejoinder.toml: there is no setting 'prot'; did you mean 'port'?" in str(failure.value)
    assert "there is no setting 'xyzzy'; `rejoinder config` lists" in str(failure.value)


def test_a_broken_file_names_itself() -> None:
    write("port = = 1")
    with pytest.raises(ConfigError, match=r"rejoinder\.toml is not valid TOML"):
        load()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "myhost"])
def test_serving_other_machines_needs_a_token_or_consent(host: str) -> None:
    with pytest.raises(ConfigError, match="set auth_token, or allow_unauthenticated"):
        load({"host": host})
    assert load({"host": host, "auth_token": "secret"}).host == host
    assert load({"host": host, "allow_unauthenticated": True}).host == host


def test_carriers_may_be_believed_unproven_on_this_machine_only() -> None:
    assert load({"phone_unsigned": True}).phone_unsigned
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1 only"):
        load({"phone_unsigned": True, "host": "0.0.0.0", "auth_token": "secret"})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.5.5.5"])
def test_serving_this_machine_needs_none(host: str) -> None:
    assert load({"host": host}).auth_token is None


def test_secrets_are_masked() -> None:
    settings = load({"auth_token": "open sesame", "twilio_auth_token": "sesame too"})
    assert "sesame" not in str(describe(settings))
    assert "sesame" not in repr(settings)
    with pytest.raises(ConfigError) as failure:
        load({"auth_token": ["sesame"], "telnyx_api_key": 5})
    assert "sesame" not in str(failure.value)


def test_a_secret_may_come_with_its_files_line_break() -> None:
    for name in ("llm_api_key", "auth_token"):
        assert getattr(load({name: "sesame\n"}), name).get_secret_value() == "sesame"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("auth_token", "ses\name"), ("llm_api_key", "ses\name"), ("llm_api_key", "s\u00e9same")],
)
def test_a_secret_that_cannot_be_sent_is_refused_and_not_told(name: str, secret: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*cannot be sent") as failure:
        load({name: secret})
    assert secret not in str(failure.value)


def test_describe_covers_every_setting() -> None:
    described = describe(load({"port": 1}))
    assert set(described) == set(Settings.model_fields)
    assert described["port"] == {"value": 1, "source": "flag"}
    assert described["voice"] == {"value": "hibari", "source": "default"}
