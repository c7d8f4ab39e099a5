"""The broker that tests start is a real one: order, partitions and transactions are kept."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.kafka_broker import KafkaBroker


def test_records_come_back_in_order(kafka: KafkaBroker) -> None:
    kafka.create_topic("orders", partitions=2)
    kafka.send("orders", "one", key="1")
    kafka.send("orders", "two", key="2")
    kafka.send("orders", "other", partition=1)
    assert kafka.records("orders") == [(b"1", b"one"), (b"2", b"two")]
    assert kafka.records("orders", partition=1) == [(None, b"other")]


def test_an_aborted_transaction_is_read_only_by_those_who_ask_for_it(kafka: KafkaBroker) -> None:
    kafka.create_topic("aborted")
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "test"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("aborted", "gone")
    producer.flush(20)
    producer.abort_transaction(20)
    assert kafka.records("aborted") == []
    assert kafka.records("aborted", committed=False) == [(None, b"gone")]
