"""A folder of Stanza models that also give lemmas, fine tags and morphology, made of the one that
ships.

A fine tag is the universal tag in lower case. Morphology is `Nominal=Yes` where a noun is likelier
than a verb, and `_` where a verb is. The lemmatizer looks words up in a dictionary; other words are
their own lemmas.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from stanza.models.lemma.vocab import MultiVocab, Vocab

from synmt.parsing.models import COMPACT

LEMMAS = {"eats": "eat", "sees": "see", "monkeys": "monkey", "girls": "girl", "The": "the"}


def write_featured_models(folder: Path) -> Path:
    """Write the models of English; gives the folder."""
    shutil.copytree(COMPACT, folder)
    resources = json.loads((folder / "resources.json").read_text())
    english = resources["en"]
    _add_features(folder / "en" / "pos" / "compact.pt")
    _write_lemmatizer(folder / "en" / "lemma" / "dictionary.pt")
    english["packages"]["default"]["lemma"] = "dictionary"
    english["lemma"] = {"dictionary": {"md5": ""}}
    (folder / "resources.json").write_text(json.dumps(resources))
    return folder


def _add_features(path: Path) -> None:
    """Add to a tagger fine tags and morphology, with the weights that it has for universal tags."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    weights, vocabularies = saved["model"], saved["vocab"]
    number = vocabularies["upos"]["_unit2id"]
    tags = list(number)[4:]
    fine = vocabularies["xpos"]
    fine["_id2unit"] = [*fine["_id2unit"], *(tag.lower() for tag in tags)]
    fine["_unit2id"] = {unit: index for index, unit in enumerate(fine["_id2unit"])}
    units = [*vocabularies["feats"]["_id2unit"]["_"], "Yes"]
    vocabularies["feats"]["_id2unit"] = {"Nominal": units}
    vocabularies["feats"]["_unit2id"] = {
        "Nominal": {unit: index for index, unit in enumerate(units)}
    }
    rows: dict[str, list[int]] = {
        "xpos": [*range(4), *(number[tag] for tag in tags)],
        # pad, unknown, empty, root, Yes
        "feats.0": [0, 1, number["VERB"], 3, number["NOUN"]],
    }
    for name, chosen in rows.items():
        for part in ("weight", "bias"):
            weights[f"tag_clf.{name}.{part}"] = weights[f"upos_clf.{part}"][chosen].clone()
    torch.save(saved, path)


def _write_lemmatizer(path: Path) -> None:
    path.parent.mkdir()
    # Stanza numbers characters and tags before it looks words up
    vocabularies = {
        name: Vocab(data, "en") for name, data in (("char", "abc"), ("pos", ["NOUN", "VERB"]))
    }
    saved = {
        "model": None,
        "dicts": (LEMMAS, {}),
        "vocab": MultiVocab(vocabularies).state_dict(),
        "config": {"dict_only": True, "lang": "en", "batch_size": 50},
    }
    torch.save(saved, path)
