"""Who asks, and what they may do and see: made at the edge from the key, and handed down to all that reads or writes.

From a project's name to the project leads no way but through a caller (`projects.find`, `ensure`, `locked`), and what
is asked for by id is looked up among what the caller may see. So a thing of a foreign project and one that there is
not are the same: both are not found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, true

from app.errors import NotFound
from app.models import LOCAL_KEY, PROJECT
from app.schemas.vocabulary import Role


class Right(StrEnum):
    """What a route asks of its caller."""

    READ = "read"
    PROPOSE = "propose"
    DECIDE = "decide"
    ADMINISTER = "administer"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.MEMBER: frozenset({Right.READ, Right.PROPOSE}),
    Role.REVIEWER: frozenset({Right.READ, Right.PROPOSE, Right.DECIDE}),
    Role.ADMIN: frozenset(Right),
}


@dataclass(frozen=True)
class Caller:
    """The bearer of a key, or whoever sits at the machine of a service that has none.

    ``projects`` are the names of those that the key is bound to; None means all.
    """

    key_id: str
    role: Role
    projects: frozenset[str] | None = None

    def may(self, right: Right) -> bool:
        """Whether the role includes the right."""
        return right in RIGHTS[self.role]

    def sees(self, project: str) -> bool:
        """Whether a project of this name, if there is one, is the caller's."""
        return self.projects is None or project in self.projects

    def check(self, project: str) -> None:
        """Let pass only a project of the caller's.

        Raises:
            NotFound: it is not, whether it exists or not.
        """
        if not self.sees(project):
            raise NotFound("There is no project of this name, or the key is not bound to it.")

    def scope(self) -> ColumnElement[bool]:
        """What restricts a query that names the table of projects to those that the caller sees."""
        return true() if self.projects is None else PROJECT.c.name.in_(sorted(self.projects))


LOCAL = Caller(LOCAL_KEY, Role.ADMIN)
