"""How does a real Kafka broker start for a test, on loopback and without Docker?

The broker comes from Maven Central: ``tests/kafka_jars.txt`` pins its jars. Scala's library and
the logger are Spark's own. It runs in KRaft mode, as controller and broker in one process.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdc_core.errors import PreflightError
from cdc_core.runtime.folders import default_runtime_folder, find_spark_home, shim_folder
from cdc_core.runtime.jars import Jar, install_jars
from cdc_core.runtime.java import JavaHome, find_java
from tests.free_port import free_port

_LIST = Path(__file__).with_name("kafka_jars.txt")
_FOLDER = Path(__file__).parents[1] / ".redolake" / "peers" / "kafka"
_OF_SPARK = ("scala-library-*.jar", "slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar")
_JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_CLUSTER = "cmVkb2xha2UtdGVzdHMtMQ"
_START_SECONDS_MAX = 300.0
_WAIT_SECONDS_MAX = 120.0


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """A running broker."""

    address: str
    """``127.0.0.1:port``, for ``bootstrap.servers``."""

    process: subprocess.Popen[bytes]

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Create a topic and wait until it is there."""
        admin = AdminClient({"bootstrap.servers": self.address})
        [done] = admin.create_topics([NewTopic(name, partitions, 1)]).values()
        done.result(_WAIT_SECONDS_MAX)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records."""
        admin = AdminClient({"bootstrap.servers": self.address})
        [done] = admin.delete_topics([name]).values()
        done.result(_WAIT_SECONDS_MAX)

    def send(
        self, topic: str, value: str | bytes | None, *, key: str | None = None, partition: int = 0
    ) -> None:
        """Send one record and wait until the broker has it; the topic is created if need be."""
        producer = Producer({"bootstrap.servers": self.address})
        producer.produce(topic, value, key=key, partition=partition)
        if producer.flush(_WAIT_SECONDS_MAX):
            raise TimeoutError(f"{topic}: the broker did not take the record")

    def records(
        self, topic: str, *, partition: int = 0, committed: bool = True
    ) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of each record of a partition, in its order.

        Args:
            topic: An existing topic.
            partition: Its partition.
            committed: Leave out records of transactions that were aborted or are open.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )
        found: list[tuple[bytes | None, bytes | None]] = []
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(_WAIT_SECONDS_MAX)) is not None:
                if (error := message.error()) is None:
                    found.append((message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()
        raise TimeoutError(f"{topic}: the broker sends nothing")


def require_kafka() -> tuple[JavaHome, str]:
    """Java and the broker's class path; skips the test where the jars cannot be had."""
    try:
        return _installed()
    except PreflightError as error:
        pytest.skip(f"Kafka's jars cannot be installed: {error}")


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    """Start a broker with its data in ``folder``; it has stopped behind the block."""
    java, class_path = require_kafka()
    port, controller = free_port(), free_port()
    settings = folder / "server.properties"
    settings.write_text(_settings(folder / "data", port, controller))
    command = [str(java.home / "bin" / "java"), *_JVM_OPTIONS, "-cp", class_path]
    storage = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)]
    subprocess.run([*command, *storage], check=True, capture_output=True)
    log = folder / "broker.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "kafka.Kafka", str(settings)], stdout=out, stderr=out)
    broker = KafkaBroker(f"127.0.0.1:{port}", process)
    try:
        _wait_until_it_answers(broker, log)
        yield broker
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder / "data", ignore_errors=True)


@functools.cache
def _installed() -> tuple[JavaHome, str]:
    java = find_java(shim_folder(default_runtime_folder()))
    jars = [_jar(line) for line in _LIST.read_text().splitlines() if not line.startswith("#")]
    paths = install_jars(_FOLDER, java.path, jars=jars)
    spark = find_spark_home() / "jars"
    paths += [path for pattern in _OF_SPARK for path in spark.glob(pattern)]
    return java, ":".join(map(str, paths))


def _jar(line: str) -> Jar:
    coordinates, sha256 = line.split()
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)


def _settings(data: Path, port: int, controller: int) -> str:
    values = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "log.dirs": data,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _wait_until_it_answers(broker: KafkaBroker, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS_MAX
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    while time.monotonic() < until and broker.process.poll() is None:
        try:
            if admin.list_topics(timeout=1).brokers:
                return
        except KafkaException:
            continue
    raise RuntimeError(f"the broker did not start: {log.read_text()[-3000:]}")
