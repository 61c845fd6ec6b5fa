"""The variants: one file for each.

| file                         | paper                           | sets                   | reads, or learns from      |
| ---------------------------- | ------------------------------- | ---------------------- | -------------------------- |
| `pascal.py`                  | Bugliarello & Okazaki, 2020     | factor (or bias)       | parent_middle              |
| `lisa.py`                    | the same; Strubell et al., 2018 | q, k, bias             | learns parent_first        |
| `tag_embedding.py`           | Sennrich & Haddow, 2016         | the embedding          | relation, features         |
| `syntax_infused.py`          | Sundararaman et al., 2019       | the embedding          | features                   |
| `deps_san.py`                | Peng et al., 2022               | factor (or bias), mask | distance                   |
| `distance_mask.py`           | Ahmad et al., 2021              | mask, bias             | distance, word             |
| `kinship_mask.py`            | McDonald & Chiang, 2021         | bias                   | kinship                    |
| `scene_mask.py`              | Slobodkin et al., 2022          | mask                   | scenes                     |
| `localness.py`               | Yang et al., 2018               | bias                   | nothing                    |
| `context.py`                 | Yang et al., 2019               | q, k                   | nothing; the layers' input |
| `relative.py`                | Shaw et al., 2018               | bias, relative         | nothing                    |
| `depth_relative.py`          | Omote et al., 2019              | bias, relative         | depth                      |
| `graph_relations.py`         | Mohammadshahi & Henderson, 2020 | bias, relative         | arcs with relations        |
| `path_relations.py`          | Cai & Lam, 2020                 | bias                   | paths of relations         |
| `structural_positions.py`    | Wang et al., 2019               | bias, relative         | signed steps               |
| `structural_depth.py`        | Wang et al., 2019               | the embedding          | depth                      |
| `dbsa.py`                    | Deguchi et al., 2019            | q, bias                | learns parent_chain        |
| `dependency_distribution.py` | Liu & Sima'an, 2022             | factor; weights        | arcs, the tree, or nothing |
| `latent_tree.py`             | Tran & Bisk, 2018               | an LSTM's memory       | nothing                    |
| `tree_attention.py`          | the same; Kim et al., 2017      | normalize              | nothing                    |
| `latent_graph.py`            | Hashimoto & Tsuruoka, 2017      | an LSTM's memory       | may learn parent_first     |
| `tree_planting.py`           | Yoshida et al., 2024            | nothing                | learns distances           |
| `gcn.py`                     | Bastings et al., 2017           | the memory's states    | parents, relations         |
| `distance_transformer.py`    | Hou et al., 2022                | bias                   | boundaries                 |
| `tree_regularization.py`     | Nandi et al., 2024              | nothing                | learns splits              |
| `tree_lstm.py`               | Eriguchi et al., 2016           | the memory             | merges                     |

Multi-task training (Currey & Heafield, 2019) is not a variant: see `synmt/data/task_corpus.py`.
"""
