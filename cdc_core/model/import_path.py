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


def made_by(path: str, *, option: str, does: str) -> object:
    """An object of the class that an option names.

    Args:
        path: ``package.module:Class``.
        option: The option, for the error.
        does: What Redolake asks of it, a sentence for the error's hint.

    Raises:
        ConfigError: It cannot be imported, or made without arguments.
    """
    found = imported(path, option=option)
    try:
        return found()  # type: ignore[operator]  # whatever it is that the user names
    except Exception as error:  # whatever a user's class raises
        raise ConfigError(
            f"{option} names something that is no class without arguments",
            hint=f"Write package.module:Class; {does}",
            path=path,
            reason=type(error).__name__,
        ) from error
