"""The variants: one file for each.

=======================  ==============================  ====================  =====================
file                     paper                           sets                  reads or learns from
=======================  ==============================  ====================  =====================
pascal                   Bugliarello & Okazaki 2020      factor or bias        parent_middle
lisa                     the same; Strubell et al. 2018  q, k, bias            learns parent_first
tag_embedding            Sennrich & Haddow 2016          the embedding         relation, features
syntax_infused           Sundararaman et al. 2019        the embedding         features
deps_san                 Peng et al. 2022                factor or bias, mask  distance
distance_mask            Ahmad et al. 2021               mask, bias            distance, word
kinship_mask             McDonald & Chiang 2021          bias                  kinship
scene_mask               Slobodkin et al. 2022           mask                  scenes
localness                Yang et al. 2018                bias                  nothing
context                  Yang et al. 2019                q, k                  the layers' input
relative                 Shaw et al. 2018                bias, relative        nothing
depth_relative           Omote et al. 2019               bias, relative        depth
graph_relations          Mohammadshahi & Henderson 2020  bias, relative        arcs with relations
path_relations           Cai & Lam 2020                  bias                  paths of relations
structural_positions     Wang et al. 2019                bias, relative        signed steps
structural_depth         Wang et al. 2019                the embedding         depth
dbsa                     Deguchi et al. 2019             q, bias               learns parent_chain
dependency_distribution  Liu & Sima'an 2022              factor; weights       arcs, tree or nothing
latent_tree              Tran & Bisk 2018                an LSTM's memory      nothing
tree_attention           the same; Kim et al. 2017       normalize             nothing
latent_graph             Hashimoto & Tsuruoka 2017       an LSTM's memory      or parent_first
tree_planting            Yoshida et al. 2024             nothing               learns distances
gcn                      Bastings et al. 2017            the memory's states   parents, relations
distance_transformer     Hou et al. 2022                 bias                  boundaries
tree_regularization      Nandi et al. 2024               nothing               learns splits
tree_lstm                Eriguchi et al. 2016            the memory            merges
=======================  ==============================  ====================  =====================

Multi-task training (Currey & Heafield, 2019) is not a variant: see `synmt/data/task_corpus.py`.
"""
