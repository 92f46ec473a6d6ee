"""Makes one kind of cluster obey: `kubernetes`, `slurm`, `local`, `fake`.

`contract` is what they share; drivers do not know each other.
"""
