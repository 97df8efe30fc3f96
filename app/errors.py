"""The one error hierarchy, and its one shape on the wire (RFC 9457).

BouncerError
├── Invalid            400  the request makes no sense
├── Unauthorized       401  no key, or not a good one
├── Forbidden          403  the key's role does not include it
├── HostRefused        403  a Host or Origin that is not ours
├── NotModified        304
├── NotFound           404
├── Conflict           409  the same call id with another content, or a stale version
├── TooManyRequests    429  too many wrong keys from one address
├── Unavailable        503  the database or the service cannot answer now
└── ConfigurationError      refused at start; never reaches the wire
"""

from http import HTTPStatus

TYPE_BASE = "urn:memory-bouncer:problem:"


class BouncerError(Exception):
    """Base of all errors; carries the problem's stable type, its status and a sentence that says what to do."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    slug = "internal"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Invalid(BouncerError):
    """The request makes no sense, and why."""

    status = HTTPStatus.BAD_REQUEST
    slug = "invalid"


class Unauthorized(BouncerError):
    """The request brings no key, or one that is not good."""

    status = HTTPStatus.UNAUTHORIZED
    slug = "unauthorized"


class Forbidden(BouncerError):
    """The role of the caller's key does not include what is asked."""

    status = HTTPStatus.FORBIDDEN
    slug = "forbidden"


class HostRefused(BouncerError):
    """The request names a host or comes from an origin that is not ours (DNS rebinding, cross-site request)."""

    status = HTTPStatus.FORBIDDEN
    slug = "host-refused"


class NotFound(BouncerError):
    """No such thing, or none that the caller may see."""

    status = HTTPStatus.NOT_FOUND
    slug = "not-found"


class NotModified(BouncerError):
    """The caller already has this answer; carries its ETag and no body."""

    status = HTTPStatus.NOT_MODIFIED
    slug = "not-modified"

    def __init__(self, etag: str) -> None:
        super().__init__("Not modified.")
        self.etag = etag


class Conflict(BouncerError):
    """The request contradicts what is stored: a reused call id, a stale version."""

    status = HTTPStatus.CONFLICT
    slug = "conflict"


class TooManyRequests(BouncerError):
    """Too many wrong keys came from this address; carries after how many seconds the next is looked at."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    slug = "too-many-requests"

    def __init__(self, detail: str, retry_after_seconds: int) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(BouncerError):
    """The service cannot answer now; trying again later may help."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    slug = "unavailable"


class ConfigurationError(BouncerError):
    """The configuration cannot work; the service refuses to start with it."""

    slug = "configuration"


def problem(status: int, slug: str, detail: str, instance: str | None = None) -> dict[str, object]:
    """The body of an error response (RFC 9457)."""
    body: dict[str, object] = {
        "type": TYPE_BASE + slug,
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }
    if instance is not None:
        body["instance"] = instance
    return body
