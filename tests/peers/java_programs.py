"""Which Java programs run against the embedded Oracle beside the driver's own client, and with which jars?

``python -m tests.peers.java_programs`` runs all of them and prints each check and its result.
"""

from __future__ import annotations

import os
from pathlib import Path

from cdc_core.runtime.folders import default_runtime_folder, shim_folder
from cdc_core.runtime.jars import Jar, install_jars
from cdc_core.runtime.java import find_java
from oracle_embedded.database import open_database
from oracle_embedded.server import EmbeddedServer
from tests.peers.jdbc import DRIVERS, run_client

_FOLDER = Path(__file__).parents[2] / ".redolake" / "peers" / "java"
PROGRAMS: dict[str, tuple[Jar, ...]] = {
    "PoolClient.java": (
        Jar("com.zaxxer", "HikariCP", "6.3.0", "07c6344059af30a135144209c7c8bd666b8823124422ec859864d209d4ab7ca1"),
        Jar("org.slf4j", "slf4j-api", "1.7.36", "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0"),
    ),
    "FlywayClient.java": (
        Jar("org.flywaydb", "flyway-core", "10.20.1", "47a4d564ded6c79835e3be1c493091109eeac3fef1094504e076ac072c8d1391"),
        Jar("org.flywaydb", "flyway-database-oracle", "10.20.1", "c73f0a5b79fedfad8326ffcc285e1872cdb3bab004ad3aec12adebdad5cb1e26"),
        Jar("com.fasterxml.jackson.core", "jackson-annotations", "2.15.2", "04e21f94dcfee4b078fa5a5f53047b785aaba69d19de392f616e7a7fe5d3882f"),
        Jar("com.fasterxml.jackson.core", "jackson-core", "2.15.2", "303c99e82b1faa91a0bae5d8fbeb56f7e2adf9b526a900dd723bf140d62bd4b4"),
        Jar("com.fasterxml.jackson.core", "jackson-databind", "2.15.2", "0eb2fdad6e40ab8832a78c9b22f58196dd970594e8d3d5a26ead87847c4f3a96"),
        Jar("com.fasterxml.jackson.dataformat", "jackson-dataformat-toml", "2.15.2", "5d242fb0a42d3e4082441306a427d22b8d54d97c1e5590aeb5fb0990b419077d"),
        Jar("com.fasterxml.jackson.datatype", "jackson-datatype-jsr310", "2.15.2", "7574c81ad570476ef6aad26f419288fd466733f3315bee3012f2f29c9dc008c8"),
    ),
    "LiquibaseClient.java": (
        Jar("org.liquibase", "liquibase-core", "4.29.2", "e69b5ec55891bef987f2e3f83d199a210f3ef2a7fcd6f6c255a2327693739d40"),
        Jar("com.opencsv", "opencsv", "5.9", "2023969b86ce968ad8ae549648ac587d141c19ae684a9a5c67c9105f37ab0d1c"),
        Jar("org.yaml", "snakeyaml", "2.2", "1467931448a0817696ae2805b7b8b20bfb082652bf9c4efaed528930dc49389b"),
        Jar("javax.xml.bind", "jaxb-api", "2.3.1", "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06"),
        Jar("commons-io", "commons-io", "2.16.1", "f41f7baacd716896447ace9758621f62c1c6b0a91d89acee488da26fc477c84f"),
        Jar("org.apache.commons", "commons-lang3", "3.15.0", "4905090022def3809e97963832fc8b2421fda800853c94d3cdbf1ad3011d9756"),
        Jar("org.apache.commons", "commons-text", "1.12.0", "de023257ff166044a56bd1aa9124e843cd05dac5806cc705a9311f3556d5a15f"),
        Jar("org.apache.commons", "commons-collections4", "4.4", "1df8b9430b5c8ed143d7815e403e33ef5371b2400aadbe9bda0883762e0846d1"),
    ),
}  # fmt: skip
"""Each program and the jars that it needs beside the newest driver's."""


def run_program(name: str) -> dict[str, str]:
    """Run one of the programs against a new database; the result of each of its checks, ``ok`` or what went wrong.

    Raises:
        PreflightError: There is no Java, or a jar cannot be fetched.
    """
    java = find_java(shim_folder(default_runtime_folder()))
    jars = install_jars(_FOLDER, java.path, jars=(DRIVERS["ojdbc11-23"], *PROGRAMS[name]))
    path = os.pathsep.join(map(str, jars))
    database = open_database()
    try:
        with EmbeddedServer(database.engine, faults=database.faults) as server:
            address = f"127.0.0.1:{server.port}/ORCLPDB1"
            return run_client(path, address, database.password("DEMO"), program=name)
    finally:
        database.close()


def main() -> None:
    """Run all programs."""
    for program in PROGRAMS:
        for check, result in run_program(program).items():
            print(f"{program}\t{check}\t{result}")


if __name__ == "__main__":
    main()
