"""What does the configuration name by ``package.module:name``?"""

from __future__ import annotations

from importlib import import_module

from cdc_core.errors import ConfigError


def imported(path: str, *, option: str) -> object:
    """What an import path names.

    Args:
        path: ``package.module:name``.
        option: The option that has it, for the error.

    Raises:
        ConfigError: There is no such module or name, or importing it fails; names the error's class
            alone, since its text may hold anything.
    """
    module, _, name = path.partition(":")
    try:
        found: object = getattr(import_module(module), name)
    except Exception as error:  # whatever a user's module raises while it is imported
        raise ConfigError(
            f"{option} names something that cannot be imported",
            hint="Install the package that has it into Redolake's environment, and write"
            " package.module:name.",
            path=path,
            reason=type(error).__name__,
        ) from error
    return found
