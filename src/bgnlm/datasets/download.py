"""Raw files of the paper's examples from the authors' repository.

A file is kept in memory until its checksum has been found right (the largest has 2.3 MB), so nothing half done or wrong
can reach the cache folder.
"""

from hashlib import sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote

from bgnlm.datasets.recipes import RawFile
from bgnlm.errors import DataError, MissingExtraError

BASE_URL = (
    "https://raw.githubusercontent.com/aliaksah/EMJMCMC2016/3954d55fc45296297ee561e0f97f85eb5048c39e/"
    "supplementaries/BGNLM/"
)
TIMEOUT = 30.0  # seconds without a sign of the server


def import_pooch() -> Any:
    """Import pooch, or say how to get it."""
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            "The data sets of the paper are downloaded with pooch, which is not installed. "
            "Run: pip install 'bgnlm[data]', or set BGNLM_DATA to a folder that holds the tables."
        ) from error
    return pooch


def url_of(raw: RawFile) -> str:
    """Return the address of a raw file."""
    return BASE_URL + quote(raw.path)


def download(raw: RawFile, advice: str) -> bytes:
    """Return the content of a raw file; `advice` says what a person can do where that fails."""
    pooch = import_pooch()
    address = url_of(raw)
    buffer = BytesIO()
    try:
        # In one piece: of a stream that ends in an error nobody closes the connection.
        pooch.HTTPDownloader(timeout=TIMEOUT, stream=False)(address, buffer, None)
    except OSError as error:  # all errors of requests are of this kind
        raise DataError(f"Could not download {address}: {_reason(error)}. Nothing was kept. {advice}") from error
    content = buffer.getvalue()
    found = sha256(content).hexdigest()
    if found != raw.sha256:
        raise DataError(
            f"What came from {address} is not the file that was asked for: its sha256 is {found}, not {raw.sha256}. "
            f"Nothing was kept. {advice}"
        )
    return content


def _reason(error: Exception) -> str:
    from requests.exceptions import HTTPError, Timeout

    match error:
        case HTTPError(response=response) if response is not None:
            return f"the server answered {response.status_code} {response.reason}"
        case Timeout():
            return f"the server gave no answer for {TIMEOUT:g} seconds"
        case _:
            return f"there is no connection, or it was cut ({type(error).__name__})"
