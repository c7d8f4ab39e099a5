"""What does a DDL statement share with its parts while it runs?"""

from __future__ import annotations

from dataclasses import dataclass

from oracle_embedded.api import OracleError
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.run.contracts import SessionState
from oracle_embedded.engine.sql import ast
from oracle_embedded.engine.storage.catalog import Definition, TableDef
from oracle_embedded.engine.storage.companions import MAPPING, OVERFLOW, not_of_its_own


@dataclass(slots=True)
class DdlRun:
    """One DDL statement that is under way, under the store's lock."""

    session: SessionState
    scn: int
    now: float
    subject_owner: str = ""
    subject: str | None = None
    object_id: int = 0
    has_warning: bool = False
    """A program was made that does not compile."""
    texts: tuple[str, ...] = ()
    """What the redo has in place of the statement's own text."""

    def about(self, owner: str, name: str | None, object_id: int) -> None:
        """Note which object the redo shall name."""
        self.subject_owner, self.subject, self.object_id = owner, name, object_id

    def put(self, definition: Definition) -> None:
        """Store a definition valid from this statement on."""
        self.session.database.store.catalog.put(definition, self.scn)

    def drop(self, definition: Definition) -> None:
        """End a definition."""
        self.session.database.store.catalog.drop(definition, self.scn)

    def own_name(self, name: ast.Name, privilege: str, any_privilege: str) -> tuple[str, str]:
        """Owner and name of an object to create; ORA-01031 without the right."""
        owner = name[0] if len(name) > 1 else self.session.schema
        if self.session.database.store.catalog.user(owner) is None:
            raise OracleError(1918, f"user '{owner}' does not exist")
        wanted = privilege if owner == self.session.username else any_privilege
        if not self.session.has_privilege(wanted) and not self.session.has_privilege(any_privilege):
            raise ora(1031)
        if len(name[-1].encode()) > 128:
            raise ora(972)
        return owner, name[-1]

    def must_be_new(self, owner: str, name: str) -> None:
        """ORA-00955 if the name is taken."""
        if self.session.database.store.catalog.find(owner, name) is not None:
            raise ora(955)

    def table(self, name: ast.Name, any_privilege: str) -> TableDef:
        """An existing table that the user may alter or drop."""
        owner = name[0] if len(name) > 1 else self.session.schema
        found = self.session.database.find(self.session, owner, name[-1])
        if isinstance(found, TableDef) and found.temporary:
            found = self.session.database.store.catalog.find(owner, name[-1])
        if not isinstance(found, TableDef) or not self.session.database.security.may_select(
            self.session.username, found
        ):
            raise ora(942)
        if owner != self.session.username and not self.session.has_privilege(any_privilege):
            raise ora(1031)
        if found.original_name is not None:
            raise ora(38301)
        if found.companion in (OVERFLOW, MAPPING):
            raise not_of_its_own(found.companion)
        return found
