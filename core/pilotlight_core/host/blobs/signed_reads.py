"""Objects of S3 by addresses that are signed here, through the connections of boto3.

What boto3 does around each `get_object` takes 3 ms of a processor, which for parts of 16 MiB is a tenth of what their
reading and checking takes; to sign an address and ask for it takes 1.3 ms. It is a short cut and nothing else: whoever
gets no object asks boto3, which knows errors, redirections and when to try again.
"""

from __future__ import annotations

from typing import Any

from pilotlight_core.host.blobs.s3_source import S3Source

VALID_S = 60
"""Of an address, which is used at once: clocks differ."""


class SignedReads:
    """Of the objects of one bucket, by a `client` of boto3's."""

    def __init__(self, client: Any, bucket: str, errors: type[Exception]) -> None:
        """`errors` are those of boto3 where it cannot reach a store, or knows nothing to sign with."""
        self._client = client
        self._bucket = bucket
        self._errors = errors
        self._session = getattr(getattr(client, "_endpoint", None), "http_session", None)
        self._was_refused = False

    def open(self, key: str) -> S3Source | None:
        """An object; None: ask boto3."""
        if self._session is None:
            return None
        from botocore.awsrequest import AWSRequest  # an optional dependency, which is there with its client

        try:
            what = {"Bucket": self._bucket, "Key": key}
            url = self._client.generate_presigned_url("get_object", Params=what, ExpiresIn=VALID_S)
            answer = self._session.send(AWSRequest("GET", url, stream_output=True).prepare())
        except self._errors:
            return None
        size = answer.headers.get("Content-Length", "")
        if answer.status_code == 200 and size.isdecimal():
            return S3Source({"Body": answer.raw, "ContentLength": size})
        self._was_refused = answer.status_code < 500
        answer.raw.close()
        return None

    def note_found(self) -> None:
        """boto3 has opened an object that was not found here: if it was refused, the store takes no such addresses."""
        if self._was_refused:
            self._session = None
