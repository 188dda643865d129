"""All tests: one torch thread, as in a worker, so that tests are as fast as sweeps and do not fight for cores."""

import torch

torch.set_num_threads(1)
