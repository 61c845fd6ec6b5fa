"""Sizes, sums and names of public files, as far as well-kept lists state them."""

from __future__ import annotations

from synmt.corpora.download import RemoteFile

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"

_SHA256 = """
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f train.en.gz
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6 train.de.gz
622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c train.fr.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28 val.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a val.de.gz
ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9 val.fr.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9 test_2016_flickr.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8 test_2016_flickr.de.gz
6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90 test_2016_flickr.fr.gz
"""
"""Of Multi30k; computed from its files."""

FILES: dict[str, RemoteFile] = {
    file.address: file
    for file in (
        *(
            RemoteFile(f"{_MULTI30K}/{name}", sha256=digest)
            for digest, name in (line.split() for line in _SHA256.strip().splitlines())
        ),
        # these four: TensorFlow Datasets, url_checksums/wmt16_translate.txt and wmt17_translate.txt
        RemoteFile(
            "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
            "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
            657_632_379,
        ),
        RemoteFile(
            "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
            "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
            918_311_367,
        ),
        RemoteFile(
            "http://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",
            "cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
            75_178_032,
        ),
        RemoteFile(
            "http://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",
            "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2",
            168_591_139,
        ),
        RemoteFile(
            "https://drive.google.com/uc?export=download&id=13GI1F1hvwpMUGBSa0QC6ov4eE57GC_Zx",
            name="UNv1.0.testsets.tar.gz",
        ),
        # to which the page wit3.fbk.eu/2015-01 links
        RemoteFile(
            "https://drive.usercontent.google.com/download?id=1Mz-iiRxRqbCVbsYfKZQ6yuAxHNzYTMnI&export=download&confirm=t",
            name="2015-01.tgz",
        ),
        # sacreBLEU's list of test sets: this archive also has them
        RemoteFile(
            "https://raw.githubusercontent.com/hlt-mt/WIT3/master/archive/2017-01-trnted/texts/en/de/en-de.tgz",
            md5="d8a32cfc002a4f12b17429cfa78050e6",
        ),
    )
}


def remote_file(address: str) -> RemoteFile:
    """Describe the file at an address, with its size, sums and name if they are known."""
    return FILES.get(address, RemoteFile(address))
