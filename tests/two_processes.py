"""Started by torchrun: two processes train the copy task twice; the first time, the second one is killed once."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from test_training import make_exact, make_recipe, make_trainer

from synmt.training.distributed import join_processes

torch.set_num_threads(1)
processes = join_processes()
for how in ("killed", "whole"):
    trainer = make_trainer(Path(sys.argv[1]) / how, make_recipe(max_steps=6), processes=processes)
    trainer.train_reader = replace(trainer.train_reader, rank=processes.rank, processes=processes.count)
    make_exact(trainer, momentum=0.9)
    again = trainer.resume()
    for record in trainer.train():
        if how == "killed" and processes.rank and record.step == 4 and not again:
            os.kill(os.getpid(), signal.SIGKILL)
    processes.wait()
