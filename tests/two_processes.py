"""Started by torchrun in test_training: two processes train the copy task."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from test_training import make_exact, make_recipe, make_trainer

from synmt.training.distributed import join_processes

torch.set_num_threads(1)
processes = join_processes()
trainer = make_trainer(Path(sys.argv[1]) / "parallel", make_recipe(max_steps=3))
trainer.processes = processes
trainer.train_reader = replace(trainer.train_reader, rank=processes.rank, processes=processes.count)
make_exact(trainer)
list(trainer.train())
processes.wait()
