# What the rules find, and what they leave alone.
from jose import jws, jwt


def bad(self, request, token, secret, key, stored, given, signature):
    # ruleid: secret-in-a-log-line
    log.info("token_issued", token=token)
    # ruleid: secret-in-a-log-line
    self.log.warning("refused", error="x", api_key=given)
    # ruleid: secret-in-a-log-line
    log.debug("request", sent=request.headers.authorization)
    # ruleid: secret-in-a-log-line
    logger.info("moved", value=self.client_secret)
    # ruleid: log-event-is-not-a-constant
    log.info(f"issued {given}")
    # ruleid: log-event-is-not-a-constant
    log.info("issued %s" % given)
    # ruleid: log-event-is-not-a-constant
    log.error(str(given))
    # ruleid: secret-compared-byte-by-byte
    if stored.secret_digest == given:
        return
    # ruleid: secret-compared-byte-by-byte
    if secret != given:
        return
    # ruleid: secret-compared-byte-by-byte
    if given == stored.secret_digest:
        return
    # ruleid: secret-compared-byte-by-byte
    if digest_of(given) != signature:
        return
    # ruleid: token-read-without-its-signature
    jwt.get_unverified_claims(token)
    # ruleid: token-read-without-its-signature
    jws.get_unverified_claims(token)
    # ruleid: token-read-without-its-signature
    jwt.decode(token, key, algorithms=["RS256"], options={"verify_signature": False})
    # ruleid: token-read-without-its-signature
    jwt.decode(token, key)


def good(self, token, key, secret, given, key_id):
    # ok: secret-in-a-log-line
    log.info("key_published", public_key="half of it that anybody may know")
    # ok: secret-in-a-log-line, log-event-is-not-a-constant
    log.info("token_issued", kid=key_id, error=type(given).__name__)
    # ok: secret-compared-byte-by-byte
    if secret is None or hmac.compare_digest(secret, given):
        return
    # ok: secret-compared-byte-by-byte
    if secret == "" or None == secret:
        return
    # ok: token-read-without-its-signature
    jwt.decode(token, key, algorithms=["RS256"], audience="tip")
