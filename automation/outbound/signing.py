"""Signs a request in the Standard Webhooks way."""

from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

PREFIX = "whsec_"


def signature_headers(*, secret: str, key: str, body: bytes, now: float) -> dict[str, str]:
    """Returns the three headers of https://www.standardwebhooks.com for a body that is sent exactly as given.

    `key` becomes the message id and stays the same over all retries; `now` is in seconds since 1970. A secret that
    begins with `whsec_` is base64, any other is taken as it is. While a secret is being changed it may hold two,
    separated by a space: the message then carries a signature of each. Raises ValueError for an empty or broken secret.
    """
    moment = datetime.fromtimestamp(int(now), tz=UTC)
    signatures = [_signer(part).sign(msg_id=key, timestamp=moment, data=body.decode()) for part in secret.split()]
    if not signatures:
        raise ValueError("The connection has no secret to sign with.")
    return {"webhook-id": key, "webhook-timestamp": str(int(now)), "webhook-signature": " ".join(signatures)}


def _signer(secret: str) -> Webhook:
    if not secret.startswith(PREFIX):
        return Webhook(secret.encode())
    try:
        return Webhook(secret)
    except Exception as error:
        raise ValueError("The secret of the connection begins with whsec_ but isn't base64.") from error
