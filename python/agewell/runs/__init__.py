"""Many runs: worker processes, folders in which no run is made twice, sweeps."""
