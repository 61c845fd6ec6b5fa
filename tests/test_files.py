"""Reading files that are not what their names say."""

import gzip

import pytest

from synmt.errors import SynmtError
from synmt.files import read_lines

TEXT = "".join(f"line {number} of a text\n" for number in range(2000)).encode()


def flipped(packed):
    return packed[:40] + bytes([packed[40] ^ 255]) + packed[41:]


@pytest.mark.parametrize("spoil", [lambda packed: packed[:-20], flipped, lambda packed: b"no gzip at all"])
def test_a_spoilt_gzip_file_is_named(tmp_path, spoil):
    path = tmp_path / "text.gz"
    path.write_bytes(spoil(gzip.compress(TEXT)))
    with pytest.raises(SynmtError, match="not a complete gzip file") as caught:
        list(read_lines(path))
    assert caught.value.where == str(path)
