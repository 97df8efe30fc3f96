"""Routes of a project's documents."""

from urllib.parse import quote, unquote

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from app.api.common import ANYWHERE, ProjectPath, problems
from app.deps import PipelineDep, Proposer, Reader
from app.schemas.projects import DocumentsHeld, DocumentsIn, DocumentsOut


class BelowProject(APIRoute):
    """A route below a project, whose name may hold slashes and even end like the route.

    Only a `/` that stands in the address as such parts the name from the route: `app/documents` is the documents of
    `app`, `app%2Fdocuments` the project of that name.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the last part of the address as it was sent; elsewhere it is decoded already."""
        sent = scope.get("raw_path") or quote(scope["path"]).encode()
        last = unquote(sent.rpartition(b"/")[2].decode("latin-1"))
        return super().matches(scope) if last == self.path.rpartition("/")[2] else (Match.NONE, {})


router = APIRouter(route_class=BelowProject, tags=["projects"], responses=problems(*ANYWHERE))


@router.put("/v1/projects/{project:path}/documents", responses=problems(400, 404, 413))
def put_documents(caller: Proposer, project: ProjectPath, sent: DocumentsIn, pipeline: PipelineDep) -> DocumentsOut:
    """Make the project's documents these. Hashes alone suffice for known texts; the answer names those wanted."""
    return pipeline.index.put_documents(caller, project, sent.documents)


@router.get("/v1/projects/{project:path}/documents", responses=problems(400, 404))
def get_documents(caller: Reader, project: ProjectPath, pipeline: PipelineDep) -> DocumentsHeld:
    """The documents that the project's candidates are compared with; none for a project that is not known."""
    return DocumentsHeld(documents=pipeline.index.documents_of(caller, project))
