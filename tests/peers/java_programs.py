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
    "HibernateClient.java": (
        Jar("org.hibernate.orm", "hibernate-core", "6.6.4.Final", "a943d2e1983bfd43e93db4461ee7fff4334093893f228b2f4cdbc4b555f3a649"),
        Jar("jakarta.persistence", "jakarta.persistence-api", "3.1.0", "475389446d35c6f46c565728b756dc508c284644ea2690644e0d8e7e339d42fd"),
        Jar("jakarta.transaction", "jakarta.transaction-api", "2.0.1", "50c0a7c760c13ae6c042acf182b28f0047413db95b4636fb8879bcffab5ba875"),
        Jar("org.jboss.logging", "jboss-logging", "3.5.0.Final", "7bb135b081952f6d32d83374619ae5201b05ca3bf862a28dd111016ce19b2c07"),
        Jar("org.hibernate.common", "hibernate-commons-annotations", "7.0.3.Final", "0db2fd57d5e43688ac6ed5cdf36deaf05d84340dcc24c2dd2a2114de38e5175d"),
        Jar("io.smallrye", "jandex", "3.2.0", "6da3e9ce8d0c0a433f3e7ce610a3c66accb00c71fee67aa0ff3e5a841395ac15"),
        Jar("com.fasterxml", "classmate", "1.5.1", "aab4de3006808c09d25dd4ff4a3611cfb63c95463cfd99e73d2e1680d229a33b"),
        Jar("net.bytebuddy", "byte-buddy", "1.14.18", "52117af1696a53aa77c131353074ada25ccbdf2df511f2af33fad6704fa95104"),
        Jar("jakarta.xml.bind", "jakarta.xml.bind-api", "4.0.0", "57e3796ad5753640088f5f9d3c53c183f2c250b7dad90529ea3e19a5515aa122"),
        Jar("jakarta.activation", "jakarta.activation-api", "2.1.1", "33bae3f0f12dbb5a7afc81d802a130359cdb44bbc7fb4b213f49b349d0491a04"),
        Jar("org.glassfish.jaxb", "jaxb-runtime", "4.0.2", "1bc271e61b71ca4bd89eb053f3d2c91d478211b02a8982cb520f216fe0e9a939"),
        Jar("org.glassfish.jaxb", "jaxb-core", "4.0.2", "d7ff2954ad78480bbab9391cccff3a22f42a82b6e09aeca1c7d502411c470ccd"),
        Jar("org.eclipse.angus", "angus-activation", "2.0.0", "3a12d321a0f35aa9458ff9b6ee93a3de76b78e3f18b077c81721473d83079147"),
        Jar("org.glassfish.jaxb", "txw2", "4.0.2", "ea71912e4f0a42530f77c9840ae90019c46402dedfdf007cff03797429a0cf0c"),
        Jar("com.sun.istack", "istack-commons-runtime", "4.1.1", "7e8148c5bf5d5ae6f8c4534c1873f82e80bf7f9164fd09ee573df0013918dcd3"),
        Jar("jakarta.inject", "jakarta.inject-api", "2.0.1", "f7dc98062fccf14126abb751b64fab12c312566e8cbdc8483598bffcea93af7c"),
        Jar("org.antlr", "antlr4-runtime", "4.13.0", "bd7f7b5d07bc0b047f10915b32ca4bb1de9e57d8049098882e4453c88c076a5d"),
    ),
    "JooqClient.java": (
        Jar("org.jooq", "jooq", "3.19.16", "972bf706a6e5aaa305ada833134d6ea3992d165e87d722d061ffa58688692e22"),
        Jar("io.r2dbc", "r2dbc-spi", "1.0.0.RELEASE", "a5846c59fea336431a4ae72ca14edbf5299b78486fa308eafb383f4ae0ea74e5"),
        Jar("org.reactivestreams", "reactive-streams", "1.0.3", "1dee0481072d19c929b623e155e14d2f6085dc011529a0a0dbefc84cf571d865"),
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
