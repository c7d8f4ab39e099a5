"""The Dagster component: one YAML file describes one source.

``type: assets.components.OracleCdc`` in a ``defs.yaml``, below any project's ``defs`` folder.
:mod:`assets.config_file` reads the file, for the command line too, so both say the same about a
wrong one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import dagster as dg
from dagster.components.resolved.scopes import LoadContextScope
from pydantic import BaseModel, ConfigDict

from assets.alerts import alert_checks, alerts_sensor, database_asset
from assets.checks import reconcile_checks
from assets.chunks import oracle_tables, snapshot_chunks
from assets.config_file import Render, attributes_json_schema, load_config
from assets.jobs import (
    EXECUTORS,
    asset_jobs,
    maintain_job,
    signal_job,
    skip_gap_job,
    snapshot_job,
    windows_job_name,
)
from assets.protocols import Opener
from assets.publishing import publishing
from assets.resource import REDOLAKE, RESOURCE_KEY
from assets.scaffolding import SourceScaffolder
from assets.schedules import windows_schedules
from assets.sensors import snapshots_sensor, windows_sensor
from assets.settings import ComponentConfig, DagsterConfig
from assets.translator import Translator
from assets.windows import lake_tables, redo_windows
from cdc_core.config import SourceConfig, sources_of
from cdc_core.steps import Pipeline
from cdc_core.steps.source_checks import as_last_found
from cdc_core.steps.spark import SparkSource

Read = Callable[[Mapping[str, str] | None], SourceConfig]


class Attributes(BaseModel):
    """The keys under ``attributes``. Editors see the real schema; values are checked by our own
    reader, which says more."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """The schema of a source's configuration, for editors and ``dg``."""
        return attributes_json_schema()


@dg.scaffold_with(SourceScaffolder)
class OracleCdc(dg.Component, dg.Resolvable):
    """One Oracle database, its captured tables, and everything that Dagster does with them."""

    translator_class: ClassVar[type[Translator]] = Translator
    """Names the assets; a subclass overrides it, and each pluggable database's source uses it
    too."""

    def __init__(
        self,
        config: SourceConfig,
        open_pipeline: Opener,
        *,
        translator: Translator | None = None,
        read: Read | None = None,
    ) -> None:
        self.options = config.dagster if isinstance(config, ComponentConfig) else DagsterConfig()
        self.open_pipeline = open_pipeline
        self.translator = translator or self.translator_class(config.name, self.options)
        self.read: Read = read or (lambda _: config)
        """The configuration with secrets from an environment, or without any."""
        self.parts = tuple(self._part_of(pdb) for pdb in config.oracle.pdbs)
        """The source of each pluggable database, where the configuration lists several; this
        component then is no source itself."""
        self.siblings: tuple[OracleCdc, ...] = ()
        """The sources of the other pluggable databases that the same configuration lists."""
        for part in self.parts:
            part.siblings = tuple(other for other in self.parts if other is not part)
        self.config = config if self.parts else known_tables(config, self.read)

    def _part_of(self, pdb: str) -> OracleCdc:
        def read(environ: Mapping[str, str] | None) -> SourceConfig:
            return sources_of(self.read(environ))[pdb]

        return type(self)(read(None), opener(read), read=read)

    @property
    def sources(self) -> tuple[OracleCdc, ...]:
        """The sources that the component describes: itself, or one for each pluggable database."""
        return self.parts or (self,)

    @classmethod
    def model(cls) -> type[BaseModel]:
        """What Dagster checks before :meth:`load`."""
        return Attributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What ``dg list components`` says."""
        return dg.ComponentTypeSpec(
            description="Change data capture of an Oracle database into Delta Lake: snapshot chunks, redo windows, change "
            "logs and mirrors as partitioned assets.",
            tags=["oracle", "cdc", "deltalake", "spark"],
            produces=["asset", "asset_check", "job", "schedule", "sensor", "resource"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Read the component's own document of its file, with positions, and render its templates
        in Dagster's context.

        Raises:
            ConfigError: It is wrong; names every problem with its line.
        """
        del attributes  # read again with positions
        document = context.component_path.instance_key
        scoped = context.with_rendering_scope({"context": LoadContextScope(context)})
        return cls.from_file(
            context.path,
            document=document if isinstance(document, int) else 0,
            render=scoped.resolution_context.resolve_value,
        )

    @classmethod
    def from_file(
        cls, path: Path, *, document: int | None = None, render: Render | None = None
    ) -> Self:
        """The source that a configuration file describes. Secrets are looked up when it is opened,
        not now.

        Raises:
            ConfigError: The file is wrong; names every problem with its line.
        """

        def read(environ: Mapping[str, str] | None) -> ComponentConfig:
            return load_config(path, environ=environ, render=render, document=document)

        return cls(read(None), opener(read), read=read)

    def build_defs(self, context: dg.ComponentLoadContext | None = None) -> dg.Definitions:
        """Assets, checks, jobs, sensors and schedules of the source."""
        if self.parts:
            return dg.Definitions.merge(*(part.build_defs(context) for part in self.parts))
        del context  # the file has said everything
        config, names, opened = self.config, self.translator, self.open_pipeline
        own = self.options.own_resource
        siblings = tuple(one.open_pipeline for one in self.siblings)
        with warnings.catch_warnings():
            # Backfill policies are beta for Dagster; their behaviour here is held by tests.
            warnings.simplefilter("ignore", dg.BetaWarning)
            checks = reconcile_checks(config, names, opened)
            maintain = maintain_job(names, opened)
            defs = dg.Definitions(
                assets=[
                    database_asset(config, names),
                    *oracle_tables(config, names),
                    redo_windows(config, names, opened, siblings),
                    lake_tables(config, names, opened, siblings),
                    *(snapshot_chunks(names, one.table, opened) for one in config.tables),
                ],
                asset_checks=[checks, alert_checks(names, opened)],
                jobs=[
                    snapshot_job(config, names, opened),
                    signal_job(names, opened),
                    skip_gap_job(names, opened),
                ],
                sensors=[
                    windows_sensor(config, names, opened, windows_job_name(names), siblings),
                    snapshots_sensor(config, names, opened),
                    alerts_sensor(names, opened),
                ],
                schedules=windows_schedules(
                    config, names, opened, windows_job_name(names), siblings
                ),
                resources={} if own else {RESOURCE_KEY: REDOLAKE},
                executor=EXECUTORS[self.options.executor],
            )
            return dg.Definitions.merge(
                defs,
                asset_jobs(config, names, checks, maintain),
                publishing(config, names, opened),
            )


def known_tables(config: SourceConfig, read: Read) -> SourceConfig:
    """The configuration with the tables that patterns were found to name when they were last looked
    up in Oracle.

    Dagster wants the names of all assets when definitions load, and must not need Oracle for that:
    the answer of the last look is in the metadata store. Its password comes from the environment.
    """
    if not config.has_patterns:
        return config
    full = as_last_found(read(os.environ))
    return config.model_copy(update={"tables": full.tables})


def opener(read: Read) -> Opener:
    """Opens the source that a file describes, with the secrets of the environment."""

    @contextmanager
    def open_pipeline(*, spark: SparkSource | None = None) -> Iterator[Pipeline]:
        with Pipeline(read(os.environ), spark=spark) as pipeline:
            yield pipeline

    return open_pipeline
