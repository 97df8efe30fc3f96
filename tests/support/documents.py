"""Documents as a hook sends them."""

from hashlib import sha256

from app.schemas.projects import DocumentIn


def document(path: str, text: str, *, send: bool = True) -> DocumentIn:
    """A document with its hash, and its text unless only the hash is sent."""
    return DocumentIn(path=path, sha256=sha256(text.encode()).hexdigest(), text=text if send else None)
