"""What every channel of signals promises, over all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

from cdc_core.config import LocalLandingConfig
from cdc_core.config.signals import SignalConfig
from cdc_core.landing.open import open_landing
from cdc_core.model.scn import Scn
from cdc_core.model.signals import Signal
from cdc_core.signals.channels import Channel, FileChannel, LandingChannel
from cdc_core.signals.kafka_channel import KafkaChannel
from cdc_core.signals.oracle_channel import OracleChannel
from cdc_core.state.store import Store
from tests.kafka_broker import KafkaBroker
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with

ASK = {"data-collections": ["HR.EMP"]}


class Place(Protocol):
    """What a sender does, and a reader."""

    def send(self, signal_id: str, kind: str, data: Any) -> None:
        """Send a signal."""

    def send_nonsense(self) -> None:
        """Send what is no signal."""

    def channel(self) -> Channel:
        """A reader as another process would have it."""


class FilePlace:
    def __init__(self, path: Path) -> None:
        self.file = path / "signals[1].txt"  # what a pattern of names takes otherwise

    def _write(self, line: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{line}\n")

    def send(self, signal_id: str, kind: str, data: Any) -> None:
        self._write(json.dumps({"id": signal_id, "type": kind, "data": data}))

    def send_nonsense(self) -> None:
        self._write('{"id": "half", "type":')

    def channel(self) -> Channel:
        return FileChannel("src", self.file)


class LandingPlace:
    def __init__(self, path: Path) -> None:
        self.landing = open_landing(LocalLandingConfig(type="local", path=str(path / "landing")))

    def send(self, signal_id: str, kind: str, data: Any) -> None:
        content = json.dumps({"type": kind, "data": data}).encode()
        self.landing.write_manifest(f"src/signals/{signal_id}", content)

    def send_nonsense(self) -> None:
        self.landing.write_manifest("src/signals/half", b"\xff{")

    def channel(self) -> Channel:
        return LandingChannel("src", self.landing)


class OraclePlace:
    def __init__(self, path: Path, oracle: Oracle) -> None:
        self.oracle = oracle
        oracle.run(
            "CREATE TABLE ASKED (ID VARCHAR2(42), TYPE VARCHAR2(32), DATA VARCHAR2(2048))",
        )
        self.config = oracle.config(path, "EMP", signals={"table": f"{OWNER}.ASKED"})

    def send(self, signal_id: str, kind: str, data: Any) -> None:
        self.oracle.run(f"INSERT INTO ASKED VALUES ('{signal_id}', '{kind}', '{json.dumps(data)}')")

    def send_nonsense(self) -> None:
        self.oracle.run("INSERT INTO ASKED VALUES ('half', 'log', '{')")

    def channel(self) -> Channel:
        session = self.oracle.capture_session(self.config)
        return OracleChannel(session, self.config, Scn(1))


class KafkaPlace:
    def __init__(self, broker: KafkaBroker) -> None:
        self.broker, self.topic = broker, f"signals-{uuid4().hex[:8]}"
        broker.create_topic(self.topic, partitions=2)
        broker.send(self.topic, "{}", key="another-source", partition=1)
        self.config = SignalConfig(kafka_topic=self.topic, kafka_servers=broker.address)

    def send(self, signal_id: str, kind: str, data: Any) -> None:
        text = json.dumps({"id": signal_id, "type": kind, "data": data})
        self.broker.send(self.topic, text, key="src")

    def send_nonsense(self) -> None:
        self.broker.send(self.topic, b"\xff{", key="src")

    def channel(self) -> Channel:
        return KafkaChannel("src", self.config)


oracle = oracle_with("CREATE TABLE EMP (ID NUMBER(9) PRIMARY KEY)", scope="module")


@pytest.fixture(params=["file", "landing", "oracle", "kafka"])
def place(request: pytest.FixtureRequest, tmp_path: Path, oracle: Oracle) -> Iterator[Place]:
    if request.param == "file":
        yield FilePlace(tmp_path)
    elif request.param == "landing":
        yield LandingPlace(tmp_path)
    elif request.param == "kafka":
        place = KafkaPlace(request.getfixturevalue("kafka"))
        first = place.channel()
        assert list(first.read(request.getfixturevalue("store").signals)) == []
        first.acknowledge()
        yield place
    else:
        yield OraclePlace(tmp_path, oracle)
        oracle.run("DROP TABLE ASKED PURGE")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/state.db", "src") as opened:
        yield opened


def read(channel: Channel, store: Store) -> Sequence[Signal]:
    found = channel.read(store.signals)
    for one in found:
        store.signals.add(one)
    return found


def test_nothing_is_there_before_somebody_sends(place: Place, store: Store) -> None:
    channel = place.channel()
    assert list(read(channel, store)) == []
    channel.acknowledge()
    assert list(read(place.channel(), store)) == []


def test_signals_come_in_order_with_id_type_and_data(place: Place, store: Store) -> None:
    place.send("a", "execute-snapshot", ASK)
    place.send("b", "log", {"message": "m"})
    channel = place.channel()
    assert [(one.id, one.type, one.data, one.state) for one in read(channel, store)] == [
        ("a", "execute-snapshot", ASK, "pending"),
        ("b", "log", {"message": "m"}, "pending"),
    ]
    assert {one.channel for one in store.signals.find()} == {channel.name}


def test_what_nobody_acknowledged_is_read_again_under_the_same_ids(
    place: Place, store: Store
) -> None:
    """As if the first process had died before it kept them."""
    place.send("a", "log", {"message": "m"})
    first = place.channel().read(store.signals)
    again = place.channel().read(store.signals)
    assert list(again) == list(first) != []


def test_what_was_acknowledged_does_not_come_again(place: Place, store: Store) -> None:
    place.send("a", "log", {"message": "m"})
    channel = place.channel()
    read(channel, store)
    channel.acknowledge()
    channel.acknowledge()
    assert list(place.channel().read(store.signals)) == []
    place.send("b", "log", {"message": "m"})
    assert [one.id for one in place.channel().read(store.signals)] == ["b"]


def test_what_is_no_signal_is_rejected_and_stops_no_other(place: Place, store: Store) -> None:
    place.send("a", "log", {"message": "m"})
    place.send_nonsense()
    place.send("z", "log", [1])
    found = read(place.channel(), store)
    assert sorted(one.state for one in found) == ["pending", "rejected", "rejected"]
    assert all("JSON object" in (one.reason or "") for one in found if one.state == "rejected")
    assert all(one.data == {} for one in found if one.state == "rejected")


def test_deleted_rows_of_the_signal_table_count_and_the_order_is_that_of_commits(
    oracle: Oracle, tmp_path: Path, store: Store
) -> None:
    place = OraclePlace(tmp_path, oracle)
    first = place.channel()
    assert list(read(first, store)) == []
    first.acknowledge()
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO ASKED VALUES ('a-late', 'log', '{\"message\": \"m\"}')")
        place.send("z-early", "log", {"message": "m"})
        oracle.run("DELETE FROM ASKED WHERE ID = 'z-early'")
        connection.commit()
    channel = place.channel()
    assert [one.id for one in read(channel, store)] == ["z-early", "a-late"]
    channel.acknowledge()
    again = place.channel()
    assert list(read(again, store)) == []
    oracle.run("DROP TABLE ASKED PURGE")


def test_a_line_in_the_making_waits_until_it_is_whole(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_core.signals.channels._UNFINISHED_LINE_SECONDS", 3600)
    file = tmp_path / "signals.txt"
    whole = '{"id": "a", "type": "log", "data": {"message": "m"}}'
    file.write_text(whole[:20])
    assert FileChannel("src", file).read(store.signals) == []
    file.write_text(whole)
    assert [one.id for one in FileChannel("src", file).read(store.signals)] == ["a"]


def test_files_that_a_dead_reader_left_are_read_in_their_order(
    tmp_path: Path, store: Store
) -> None:
    """A pause behind the resume that came later would last."""
    file = tmp_path / "signals.txt"
    sent = [f"s{number}" for number in range(8)]
    for one in sent:
        file.write_text(f'{{"id": "{one}", "type": "log", "data": {{"message": "m"}}}}\n')
        found = FileChannel("src", file).read(store.signals)  # and dies
    assert [one.id for one in found] == sent


def test_a_line_that_never_becomes_whole_is_rejected(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "signals.txt"
    file.write_text('{"id": "a"')
    os.utime(file, (1, 1))
    [found] = FileChannel("src", file).read(store.signals)
    assert (found.state, found.reason) == ("rejected", "it is no JSON object in UTF-8")


def test_a_line_without_an_id_gets_one_that_stays(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "signals.txt"
    file.write_text('{"type": "log", "data": "{\\"message\\": \\"m\\"}"}\n' * 2)
    first = FileChannel("src", file).read(store.signals)
    assert len({one.id for one in first}) == 2
    assert [one.data for one in first] == [{"message": "m"}] * 2
    assert FileChannel("src", file).read(store.signals) == first
