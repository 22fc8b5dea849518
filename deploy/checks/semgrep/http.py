# What the rules find, and what they leave alone.
import ssl
import urllib.request

import httpx
import requests


def bad(url, session, context):
    # ruleid: tls-not-verified
    requests.get(url, verify=False, timeout=3)
    # ruleid: tls-not-verified
    session.verify = False
    # ruleid: tls-not-verified
    ssl._create_unverified_context()
    # ruleid: tls-not-verified
    context.check_hostname = False
    # ruleid: tls-not-verified
    context.verify_mode = ssl.CERT_NONE
    # ruleid: request-without-timeout
    requests.post(url, json={})
    # ruleid: request-without-timeout
    httpx.get(url)
    # ruleid: request-without-timeout
    urllib.request.urlopen(url)


def good(url, authority):
    # ok: tls-not-verified, request-without-timeout
    requests.get(url, verify=authority, timeout=3)
    # ok: request-without-timeout
    requests.Session()
    # ok: request-without-timeout
    urllib.request.urlopen(url, timeout=3)
    # ok: request-without-timeout
    httpx.Client(timeout=httpx.Timeout(3), verify=httpx.create_ssl_context())
