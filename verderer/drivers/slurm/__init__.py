"""The `slurm` driver: attempts are batch jobs of the agent's own user, made obey by Slurm's tools.

Belongs here: the calls of `sbatch`, `squeue`, `scancel`, `scontrol`, `sacct`, what goes into a
job, and what its files and Slurm's records say together. `readers/` turns what Slurm prints into
values and does nothing else; `node/` holds the one program that runs inside a job. Does not
belong here: deciding what should run, and anything that needs more than Slurm's own commands and
a folder that the agent and all nodes share.
"""
